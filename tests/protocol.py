"""A session of the page over Streamlit's own protocol, without a browser: what a browser would hold, send and be sent."""

import asyncio
import json
import random
import time

import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

THINK = 2  # seconds between the answer and the next change, half to one and a half times


class Session:
    """One person at the page: what their browser would hold and send."""

    def __init__(self, number):
        self.random = random.Random(number)
        self.address, self.page, self.ids, self.states = "", "", {}, {}  # ids: (widget, fragment) of every control by its key
        self.kept, self.received = {}, []  # messages by hash, which are not sent twice; (kind of element or message, bytes)

    async def live(self, url, changes, opened, everybody):
        waits = []
        await asyncio.sleep(0.02 * self.random.random())
        async with websockets.connect(
            f"ws://{url}/_stcore/stream",
            subprotocols=["streamlit"],
            max_size=None,
            compression=None,
            open_timeout=120,
            ping_interval=None,  # a server that is busy for long is what is measured
        ) as socket:
            await self.ask(socket)
            opened.release()
            await everybody.wait()
            for turn in range(changes):
                await asyncio.sleep(self.random.uniform(0.5, 1.5) * THINK)
                start = time.perf_counter()
                await (self.seed, self.head, self.padding)[turn % 3](socket)
                waits.append(time.perf_counter() - start)
        return waits

    async def seed(self, socket):
        await self.change(socket, "seed", string_value=str(self.random.randrange(10**9)))

    async def padding(self, socket):
        await self.change(socket, "padding", string_value=f"{self.random.randrange(9)}, {self.random.randrange(9)}")

    async def head(self, socket):
        """A click on a cell of some head, as the live picture reports it."""
        cell = {"head": self.random.randrange(8), "query": self.random.randrange(17), "key": self.random.randrange(17)}
        cell |= {"pressed": True, "serial": time.monotonic_ns()}
        picture, fragment = self.ids["picture"]
        message = self.message(fragment)
        message.rerun_script.widget_states.widgets.add(id=picture, json_value='{"width": 1104}')
        events = message.rerun_script.widget_states.widgets.add()
        events.id = f"$$STREAMLIT_INTERNAL_KEY_{picture}__events"
        events.json_trigger_value = json.dumps([{"event": "cell", "value": [cell]}])
        await self.send(socket, message)

    async def change(self, socket, name, **value):
        """Let the control ``name`` hold this; one that has gone since too."""
        self.states[name] = value
        await self.send(socket, self.message(self.ids[name][1]))

    async def press(self, socket, name):
        """Press the button ``name``."""
        widget, fragment = self.ids[name]
        message = self.message(fragment)
        message.rerun_script.widget_states.widgets.add(id=widget, trigger_value=True)
        await self.send(socket, message)

    async def ask(self, socket):
        await self.send(socket, self.message())

    def message(self, fragment=""):
        """A request to run, with the address and every widget that this session has changed."""
        message = BackMsg()
        message.rerun_script.query_string = self.address
        message.rerun_script.page_name = self.page
        message.rerun_script.fragment_id = fragment
        message.rerun_script.cached_message_hashes.extend(self.kept)
        for name, value in self.states.items():
            widget = message.rerun_script.widget_states.widgets.add(id=self.ids[name][0])
            for kind, held in value.items():
                if isinstance(held, list):
                    getattr(widget, kind).data.extend(held)
                else:
                    setattr(widget, kind, held)
        return message

    async def send(self, socket, message):
        """Send, and read on until the script has ended; raises where it drew an error."""
        await socket.send(message.SerializeToString())
        self.received = []
        while True:
            data, answer = await socket.recv(), ForwardMsg()
            answer.ParseFromString(data)
            kind = answer.WhichOneof("type")
            if kind == "ref_hash":
                self.received.append(("kept", len(data)))
                continue
            if answer.metadata.cacheable:
                self.kept[answer.hash] = True
            self.received.append((answer.delta.new_element.WhichOneof("type") if kind == "delta" else kind, len(data)))
            if kind == "delta":
                self.drawn(answer.delta)
            elif kind == "page_info_changed":
                self.address = answer.page_info_changed.query_string
            elif kind == "script_finished" and answer.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN:
                return

    def drawn(self, delta):
        kind = delta.new_element.WhichOneof("type")
        if kind is None:
            return
        element = getattr(delta.new_element, kind)
        if kind == "exception":
            raise RuntimeError(element.message)
        if getattr(element, "id", "").startswith("$$ID-"):
            key = element.id.split("-", 2)[2]
            self.ids[key] = element.id, delta.fragment_id
