package guest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	oci "github.com/opencontainers/runtime-spec/specs-go"
	runtimecdi "tags.cncf.io/container-device-interface/pkg/cdi"
	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/dovetail-dra/dovetail/pkg/cdi"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/cuda"
	"github.com/dovetail-dra/dovetail/test/vm/internal/ramdisk"
)

// container is one of runc's, and one of a Pod's. It has what containerd gives containers
// on a node with cgroup version 2, as far as these tests need it.
type container struct {
	id string
	// machine is what its GPUs are of; nil: it has none.
	machine *simulator.Machine
	devices []cdi.Device

	pid int
	// in and out are its program's standard input and output.
	in  *os.File
	out *bufio.Reader
}

// podCgroup is a Pod's as the kubelet makes it, in which its containers have theirs.
const podCgroup = "/kubepods/burstable/pod4f1c"

// cgroup is where sysfs has the container's.
func (c *container) cgroup() string { return filepath.Join("/sys/fs/cgroup", podCgroup, c.id) }

// create makes the container, whose program then waits to be started. The error is what
// runc says.
func (c *container) create(t *testing.T) error {
	t.Helper()
	bundle := t.TempDir()
	config, err := json.Marshal(c.configuration(t))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(bundle, "config.json"), config, 0o600))
	stdin, in, err := os.Pipe()
	must(t, err)
	out, stdout, err := os.Pipe()
	must(t, err)
	c.in, c.out = in, bufio.NewReader(out)
	defer func() { _ = errors.Join(stdin.Close(), stdout.Close()) }()
	t.Cleanup(func() { _ = errors.Join(in.Close(), out.Close()) })

	log, pid := filepath.Join(bundle, "log"), filepath.Join(bundle, "pid")
	// The root file system is the kernel's first one, from which none pivots.
	cmd := exec.CommandContext(t.Context(), "runc", "--log="+log, "create", "--no-pivot", "--bundle="+bundle, "--pid-file="+pid, c.id)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stdout
	t.Cleanup(func() { _ = exec.Command("runc", "delete", "--force", c.id).Run() })
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(log)
		return fmt.Errorf("%w: %s", err, said)
	}
	_, err = fmt.Sscan(read(t, pid), &c.pid)
	must(t, err)
	return nil
}

// remove ends the container, and with it its cgroup.
func (c *container) remove(t *testing.T) {
	t.Helper()
	runc(t, "delete", "--force", c.id)
	must(t, absent(c.cgroup()))
}

func runc(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("runc", args...).CombinedOutput(); err != nil {
		t.Fatalf("runc %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// do has the container's program do something, and returns what it says of it.
func (c *container) do(t *testing.T, command string) (line cuda.Line) {
	t.Helper()
	if command != "" {
		_, err := fmt.Fprintln(c.in, command)
		must(t, err)
	}
	text, err := c.out.ReadString('\n')
	must(t, err)
	if err := json.Unmarshal([]byte(text), &line); err != nil {
		t.Fatalf("the program says %q", text)
	}
	return line
}

// start starts the container's program, which finds its GPUs.
func (c *container) start(t *testing.T) {
	t.Helper()
	runc(t, "start", c.id)
	if line := c.do(t, ""); line.Error != "" {
		t.Fatalf("the program in the container says %+v", line)
	}
}

// configuration is the container's, with its devices (OCI runtime specification,
// "Configuration").
func (c *container) configuration(t *testing.T) *oci.Spec {
	t.Helper()
	config := &oci.Spec{
		Version: oci.Version,
		Root:    &oci.Root{Path: "/" + ramdisk.ContainerRoot},
		Process: &oci.Process{Args: []string{"/" + ramdisk.ContainerProgram, "--commands"}, Cwd: "/"},
		Mounts: []oci.Mount{
			{Destination: "/proc", Type: "proc", Source: "proc"},
			{Destination: "/dev", Type: "tmpfs", Source: "tmpfs"},
			{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"nosuid", "noexec", "nodev", "ro"}},
			{Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup", Options: []string{"nosuid", "noexec", "nodev", "ro"}},
		},
		Linux: &oci.Linux{
			CgroupsPath: filepath.Join(podCgroup, c.id),
			Namespaces: []oci.LinuxNamespace{
				{Type: oci.PIDNamespace}, {Type: oci.MountNamespace}, {Type: oci.NetworkNamespace}, {Type: oci.CgroupNamespace},
			},
		},
	}
	root := "/"
	if c.machine != nil { // which the program sees in place of a driver
		root = c.machine.Root()
		const at = "/machine"
		config.Mounts = append(config.Mounts, oci.Mount{Destination: at, Type: "bind", Source: root, Options: []string{"rbind", "rw"}})
		config.Process.Env = append(config.Process.Env, simulator.RootVariable+"="+at)
	}
	inject(t, config, root, c.devices)
	return config
}

// edits are those of the agent, but for NVIDIA's.
type edits struct{ *cdi.NVIDIA }

func (edits) Common() (*specs.ContainerEdits, error)    { return &specs.ContainerEdits{}, nil }
func (edits) GPU(string) (*specs.ContainerEdits, error) { return &specs.ContainerEdits{}, nil }

// inject writes a claim's CDI specification as the agent does, and has CDI's library apply
// it, as containerd does.
func inject(t *testing.T, config *oci.Spec, driverRoot string, devices []cdi.Device) {
	t.Helper()
	dir := t.TempDir()
	store, err := cdi.NewStore(dir, t.TempDir(), edits{cdi.NewNVIDIA(cdi.NVIDIAOptions{
		HostDriverRoot: driverRoot, Hook: cdi.Hook{Path: "/bin/dovetail-hook"},
	})})
	must(t, err)
	claim := cdi.Claim{UID: "0b7c", Devices: devices}
	must(t, store.Write(claim))
	cache, err := runtimecdi.NewCache(runtimecdi.WithSpecDirs(dir), runtimecdi.WithAutoRefresh(false))
	must(t, err)
	for _, d := range devices {
		_, err := cache.InjectDevices(config, cdi.DeviceID(claim.UID, d))
		must(t, err)
	}
}
