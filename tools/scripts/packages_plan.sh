# Tells what installing packages would do: MARKER ROOT PACKAGE... It changes nothing: package lists
# that are missing are fetched into a folder of its own, which goes away with it, and none of the
# programs run that the host has apt start besides.

marker=$1
shift 2
export LC_ALL=C
has apt-get || refuse "there is no apt-get here"
scratch=$(mktemp -d) || refuse "no temporary folder can be made"
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

printf '#clear %s;\n' APT::Update::Pre-Invoke APT::Update::Post-Invoke \
  APT::Update::Post-Invoke-Success DPkg::Pre-Invoke DPkg::Post-Invoke DPkg::Pre-Install-Pkgs \
  AptCli::Hooks >"$scratch/apt.conf"

try() {  # PACKAGE...: what apt would do; its further options are in $options
  # shellcheck disable=SC2086
  apt-get $options -s -y --no-install-recommends install -- "$@" >"$scratch/plan" 2>&1 </dev/null
}

options="-c $scratch/apt.conf"
try "$@"
code=$?
if [ $code -ne 0 ] && grep -q -e 'Unable to locate' -e 'no installation candidate' "$scratch/plan"; then
  mkdir -p "$scratch/lists/partial" "$scratch/cache/archives/partial"
  options="$options -o Dir::State::lists=$scratch/lists -o Dir::Cache=$scratch/cache"
  # shellcheck disable=SC2086
  limited 120 apt-get $options -q -o Acquire::Retries=1 update >"$scratch/update" 2>&1 </dev/null
  say updated 1
  grep '^[EW]:' "$scratch/update" | tell update_said
  try "$@"
  code=$?
fi
say code "$code"
tell plan 65536 <"$scratch/plan"
# shellcheck disable=SC2086
[ $code -eq 0 ] && apt-get $options -qq -y --no-install-recommends --print-uris install -- "$@" \
  2>/dev/null </dev/null | tell uris 131072
say end 1
