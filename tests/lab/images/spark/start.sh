# Makes the two people of this machine and starts sshd. Everything comes by the environment:
# LAB_PORT, LAB_UID, LAB_HOME (of the one in the docker group), LAB_OTHER_HOME, LAB_HOST_KEY and
# LAB_PUBLIC_KEY (contents).
set -euo pipefail
umask 077
printf '%s\n' "$LAB_HOST_KEY" > /etc/ssh/ssh_host_ed25519_key
printf '%s\n' "$LAB_PUBLIC_KEY" > /lab/authorized_keys
chmod 644 /lab/authorized_keys
umask 022
cp /lab/motd /etc/motd
groupadd --non-unique --gid "$(stat -c %g /var/run/docker.sock)" engine-users
useradd --password '*' --no-create-home --home-dir "$LAB_HOME" --uid "$LAB_UID" --shell /bin/bash \
    --groups engine-users spark
useradd --password '*' --no-create-home --home-dir "$LAB_OTHER_HOME" --uid "$((LAB_UID + 1))" \
    --shell /bin/bash nodocker
exec /usr/sbin/sshd -D -e -p "$LAB_PORT" -f /lab/sshd_config
