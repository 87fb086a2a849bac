"""Print what people read and what programs parse. Nothing that participants wrote acts on a terminal."""
