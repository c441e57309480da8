"""JSON and TOML changed in place, comments and order kept, and how a change is shown; knows no engine."""
