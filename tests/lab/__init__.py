"""The lab: real parts that tests need beside Python (tmux, mounts, package index, sshd, Docker)."""
