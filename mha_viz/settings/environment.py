"""What a command line tells the app: names in the environment."""

CLASS = "MHA_VIZ_CLASS"  # set while a class is served
FILE = "MHA_VIZ_FILE"  # the absolute path of the file to open
