#!/bin/sh
# Stands in for nvidia-smi on a simulated machine. It reads what the simulated
# driver shows in proc below the directory that it is installed in; in a
# container, which has no such proc, it lists the device nodes that are there.

root=$(cd "$(dirname "$0")/../.." && pwd)
root=${root%/}
proc=$root/proc/driver/nvidia

list() {
	n=0
	for information in "$proc"/gpus/*/information; do
		[ -e "$information" ] || continue
		model=$(sed -n 's/^Model:[ \t]*//p' "$information")
		uuid=$(sed -n 's/^GPU UUID:[ \t]*//p' "$information")
		echo "GPU $n: $model (UUID: $uuid)"
		n=$((n + 1))
	done
	[ "$n" -eq 0 ] || return 0
	for node in "$root"/dev/nvidia[0-9]*; do
		[ -c "$node" ] || continue
		echo "GPU $n: ${node#"$root"} (simulated)"
		n=$((n + 1))
	done
	[ "$n" -ne 0 ]
}

case $1 in
-L | --list-gpus) ;;
*)
	echo "nvidia-smi (simulated): only -L is there" >&2
	exit 2
	;;
esac
if ! list; then
	echo "nvidia-smi (simulated): no GPU: the driver is not loaded, or the container was given none" >&2
	exit 9
fi
