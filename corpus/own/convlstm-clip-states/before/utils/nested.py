def detach_all(nested):
    """Cut every tensor in nested lists and tuples from its history."""
    if isinstance(nested, (list, tuple)):
        return type(nested)(detach_all(part) for part in nested)
    return nested.detach()
