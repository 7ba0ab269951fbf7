"""One file a recipe, called like it; `edokit.members.registry` finds them.

A recipe of many parts lives beside this folder and is only named here.
"""
