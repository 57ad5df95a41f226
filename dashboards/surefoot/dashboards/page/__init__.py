"""The page: server-rendered, no script needed, nothing from the network."""
