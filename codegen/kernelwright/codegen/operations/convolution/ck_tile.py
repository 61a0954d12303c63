TREES = ()
SOURCES = {}
