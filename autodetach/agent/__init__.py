"""The agent: runs in the user's interpreter and reports what the program's graph did.

Standard library and torch only. It never imports the rest of the package: the server loads this folder by path
under a private name, so nothing has to be installed in the user's environment.
"""
