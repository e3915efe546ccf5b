# Makes the people of this machine and starts sshd: `worker` becomes root without a password, `typist`
# would have to type one, `guest` may not. LAB_PORT, LAB_LISTEN, LAB_HOST_KEY and LAB_PUBLIC_KEY come by the
# environment.
set -euo pipefail
umask 077
printf '%s\n' "$LAB_HOST_KEY" > /etc/ssh/ssh_host_ed25519_key
printf '%s\n' "$LAB_PUBLIC_KEY" > /lab/authorized_keys
chmod 644 /lab/authorized_keys
for name in worker typist guest; do
    useradd --password '*' --create-home --shell /bin/bash "$name"
done
printf 'worker ALL=(ALL) NOPASSWD: ALL\ntypist ALL=(ALL) ALL\n' > /etc/sudoers.d/lab
exec /usr/sbin/sshd -D -e -p "$LAB_PORT" -o "ListenAddress=$LAB_LISTEN" -f /lab/sshd_config
