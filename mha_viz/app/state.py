"""What a person has set, right or wrong, and the address that says so. Nothing here knows Streamlit.

A Form holds the fields of one dataclass as their widgets hold them. Looking is all that the pages of a layer look at: a kind of source, a
Form for each kind, and the Display. A Place keeps either in step with the browser's address.
"""

from dataclasses import fields

from mha_viz.core.rules import Wrong
from mha_viz.settings import Display, View, from_address, parsed, ruled_value, to_address
from mha_viz.settings.spelling import display_from_address
from mha_viz.sources.base import NOTHING, SOURCES, kind_named


class Form:
    """The fields of a frozen dataclass of ruled fields as a person has set them.

    ``raw`` is what the widget of each field holds: text where one types, else the value. Fields ``aside`` count as their defaults while
    ``raw`` keeps what they held: a switch beside them is off. ``good`` are the last settings that kept every rule and could be
    shown. ``first`` are values that fields hold at first in place of their defaults, ``stand_ins`` what a widget holds at first whose
    field is aside, and ``spellings`` a function for a field whose value is not written as it is typed.
    """

    def __init__(self, of, first=NOTHING, stand_ins=NOTHING, spellings=NOTHING):
        self.of, self.first, self.stand_ins, self.spellings = of, first, stand_ins, spellings
        self.made = None, None
        self.defaults = {f.name: f.default for f in fields(of)}
        self.good = of(**first)
        self.take({})

    def take(self, values):
        """Hold these values, and the others as they are at first."""
        self.raw, self.aside = {}, set()
        self.change(**{**self.defaults, **self.first, **values})

    def change(self, **values):
        """Set fields as their widgets would, and the switches beside them."""
        for name, value in values.items():
            if name in self.stand_ins and value == self.defaults[name]:
                self.raw.setdefault(name, self.stand_ins[name])
                self.aside.add(name)
            else:
                self.put(name, self.typed(name, value))

    def typed(self, name, value):
        """The value of a field as its widget holds it."""
        if isinstance(value, tuple):
            return ", ".join(map(str, value))
        return self.spellings[name](value) if name in self.spellings and value is not None else value

    def put(self, name, raw):
        """Let the widget of a field hold ``raw``, whatever that is; the field counts."""
        self.raw[name] = raw
        self.aside.discard(name)

    def reset(self, *names):
        """Give these fields back what they hold at first."""
        self.change(**{name: self.first.get(name, self.defaults[name]) for name in names})

    def counts(self, name):
        """Whether the field counts, or is aside."""
        return name not in self.aside

    def switch(self, on, *names):
        """Let these fields count, or put them aside: what they hold stays."""
        self.aside = self.aside - set(names) if on else self.aside | set(names)

    def value(self, name):
        """What the field is set to, as far as it can be read; its rule is still to be kept."""
        if not self.counts(name):
            return self.defaults[name]
        raw = self.raw[name]
        if isinstance(raw, str) and not raw.strip() and self.defaults[name] is None and name not in self.stand_ins:
            return None  # an empty field means none, where no switch says so
        if raw is None and name in self.stand_ins:
            return ""  # switched on and left empty: wrong, and not the same as off
        return parsed(self.of, name, raw) if isinstance(raw, str) else raw

    def values(self):
        """What every field is set to, by name."""
        return {name: self.value(name) for name in self.raw}

    def settings(self, **change):
        """The settings that are set, with this ``change``; raises the first Wrong where they break a rule.

        Each part of a page asks for them: they are made once for what is held.
        """
        if change:
            return self.of(**self.values() | change)
        held = self.held()
        if self.made[0] != held:
            self.made = held, self.of(**self.values())
        return self.made[1]

    def address(self):
        """What is set, as an address: fields that go together badly too, so that a class can be sent to them. A value that breaks the
        rule of its own field spells nothing."""
        spelled = {}
        for name, value in self.values().items():
            try:
                spelled |= to_address(self.of, **{name: ruled_value(self.of, name, value)})
            except Wrong:
                continue
        return spelled

    def held(self):
        """All that is set, to be compared with what was."""
        return dict(self.raw), frozenset(self.aside)

    def read(self, query):
        """Take an address over. Returns a Wrong for each value of it that is bad, which falls back alone."""
        found, notes = from_address(query, self.of)
        self.arrive(found)
        return notes

    def arrive(self, values):
        """Hold these values of an address; shown are those of them that go together, until all do."""
        self.take(values)
        fitting = self.values()
        while True:
            try:
                self.good = self.of(**fitting)
                return
            except Wrong as wrong:
                first = {**self.defaults, **self.first}
                about = [wrong.argument, *(name for change in wrong.nearest for name in change)]
                at_fault = next((name for name in about if name in first and fitting.get(name) != first[name]), None)
                fitting = dict(self.first) if at_fault is None else fitting | {at_fault: first[at_fault]}

    def forget_wrong(self, *names):
        """Give fields that no widget shows back what they hold at first, where they break their own rules: nobody could mend them."""
        for name in names:
            try:
                ruled_value(self.of, name, self.value(name))
            except Wrong:
                self.reset(name)


class Looking:
    """What the pages of a layer look at: the ``kind`` of source, a Form for each kind that was set, so that going from one to another and
    back loses nothing, and the ``display`` of it."""

    def __init__(self):
        self.kind, self.forms, self.display = kind_named(None), {}, Display()

    @property
    def form(self):
        """The Form of the kind that is looked at."""
        kind = self.kind
        if kind.name not in self.forms:
            self.forms[kind.name] = Form(kind.settings, {**kind.fixed, **kind.first}, kind.stand_ins, kind.spellings)
        return self.forms[kind.name]

    @property
    def view(self):
        """The View of what is looked at."""
        return self.display.view

    def change(self, **values):
        """Change fields of the Display. Raises Wrong, and changes nothing, where a value breaks its rule."""
        self.display = self.display.changed(**values)

    def choose(self, name):
        """Look at the source of this name, as it was left. What is chosen in one says nothing of another."""
        before, self.kind = self.kind, SOURCES[name]
        if self.kind.settings is not before.settings:
            self.display = Display(View(colors=self.view.colors, scale=self.view.scale))

    def read(self, query, fallback=None):
        """Take an address over; where it names no source that there is, of the ``fallback``. Returns a Wrong for each value of it that is
        bad."""
        query, wrong = dict(query), []
        try:
            kind = kind_named(query.pop("source", None))
        except Wrong as unknown:
            kind, wrong = kind_named(fallback), [unknown]
        found, self.display, notes = display_from_address(query, kind.settings)
        self.kind = kind.among(found)
        self.form.arrive(found)
        return wrong + notes

    def address(self):
        """What is looked at and how it is shown, as an address."""
        return self.kind.spelling | self.form.address() | to_address(**self.display.values)

    def held(self):
        return self.kind.name, self.form.held(), self.display


class Place:
    """Where a person is: a Form or Looking as ``content``, and the address that says what it holds.

    ``address`` is what the browser was told last, ``behind`` what it may still show until it hears of that. ``notes`` are the Wrongs of the
    address that was taken over.
    """

    def __init__(self, content):
        self.content, self.address, self.behind, self.notes = content, None, [], []
        self.written = self.arrived = None
        self.spelled = None, {}

    def arrive(self, query, with_change, **how):
        """Take the address over where a person went to another one: a first visit, a shared link, Back. Returns whether it was.

        Somebody quick changes a second thing before the address of the first has reached the browser. Such an address is an earlier one
        and comes ``with_change``; Back to it comes with none.
        """
        if query == self.address:
            self.behind = []
            return False
        if query in self.behind and (with_change or self.content.held() != self.written):
            return False
        self.notes = self.content.read(query, **how)
        self.address, self.behind = query, []
        self.written = self.arrived = self.content.held()
        return True

    def now(self):
        """The address that says what is set now. Each link of a page asks for it: it is spelled once for what is held."""
        held = self.content.held()
        if self.spelled[0] != held:
            self.spelled = held, self.content.address()
        return dict(self.spelled[1])

    def spell(self):
        """The address that says what is set now, where that is another than the browser was told; else None."""
        spelled, self.written = self.now(), self.content.held()
        if spelled == self.address:
            return None
        self.behind.append(self.address)
        self.address = spelled
        return spelled

    @property
    def untouched(self):
        """Whether nothing was changed since the address was taken over: its notes still hold."""
        return self.content.held() == self.arrived
