"""Commands of a plan that outlive a connection, and the reboot."""
