"""What the templates of `mew init` run.

- `files`  an MCP server for the text files of a folder: `python -m mew.demo.files FOLDER`
"""
