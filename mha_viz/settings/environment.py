"""What a command line tells the app: names in the environment."""

CLASS = "MHA_VIZ_CLASS"  # set while a class is served
MODELS_FOLDERS = (
    "MHA_VIZ_MODELS_FOLDERS"  # absolute paths of folders that an address may name models in, as PATH separates them
)
FILE = "MHA_VIZ_FILE"  # the absolute path of the file to open
