"""Where decisions come from: the embedded playbook, a recorded run."""
