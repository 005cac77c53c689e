package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dovetail-dra/dovetail/demo/machines"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
	"github.com/dovetail-dra/dovetail/pkg/simulator/description"
	"github.com/dovetail-dra/dovetail/pkg/simulator/tree"
	"github.com/dovetail-dra/dovetail/test/harness"
)

// node is the cluster's one node; its pool has the same name.
const node = "node-1"

// gpus is how many a DGX H100 has.
const gpus = 8

// publishTimeout bounds how long an agent may take to publish them.
const publishTimeout = time.Minute

// bench is what all benchmarks share.
type bench struct {
	*harness.Cluster
	claims     *claims
	kubeconfig string
	// disk and memory are folders on a disk and, as /run on a node, in memory.
	disk, memory string
	// programs that make has built, and what stands in for NVIDIA's CDI hook.
	node, mps, sim, floor, library, tools, hook string
	// devices are the names of the machine's GPUs, once published.
	devices []string
}

func newBench(ctx context.Context) (b *bench, err error) {
	cluster, err := harness.Open()
	if err != nil {
		return nil, err
	}
	b = &bench{Cluster: cluster, kubeconfig: os.Getenv("KUBECONFIG")}
	for path, name := range map[*string]string{
		&b.node: "dovetail-node", &b.mps: "dovetail-mps", &b.floor: "bench-floor",
		&b.sim: "dovetail-sim", &b.library: "libnvidia-ml.so.1", &b.tools: "dovetail-sim-tools",
	} {
		*path = filepath.Join(b.Root, "bin", name)
		if _, err := os.Stat(*path); err != nil {
			return nil, fmt.Errorf("%w: `make bench` builds it", err)
		}
	}
	defer func() {
		if err != nil {
			err = join(err, b.remove())
		}
	}()
	// /var/tmp is on a disk, as /var/lib is. The name is short: in it are MPS's sockets, whose
	// paths have 107 bytes (unix(7)).
	if b.disk, err = os.MkdirTemp("/var/tmp", "bench-"); err != nil {
		return nil, err
	}
	if b.memory, err = os.MkdirTemp(memoryDir(), "dovetail-bench-"); err != nil {
		return nil, err
	}
	for _, path := range []*string{&b.node, &b.mps} {
		if *path, err = copyProgram(*path, b.disk); err != nil {
			return nil, err
		}
	}
	b.hook = filepath.Join(b.disk, "nvidia-cdi-hook")
	if err := os.WriteFile(b.hook, nil, 0o755); err != nil {
		return nil, err
	}
	b.claims, err = newClaims(ctx, cluster)
	return b, err
}

// copyProgram copies a program and has the kernel forget it, so that it is read from
// the disk as after a boot. How much of it the kernel maps into memory at once depends
// on how it came into the page cache: a file just written is mapped in larger pieces.
func copyProgram(path, dir string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	to := filepath.Join(dir, filepath.Base(path))
	f, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return "", err
	}
	_, err = f.Write(content)
	err = join(err, f.Sync(), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
	return to, join(err, f.Close())
}

// memoryDir is where files are kept in memory.
func memoryDir() string {
	for _, dir := range []string{"/run", "/dev/shm"} {
		var fs unix.Statfs_t
		if err := unix.Statfs(dir, &fs); err == nil && fs.Type == unix.TMPFS_MAGIC {
			return dir
		}
	}
	return "" // the folder for temporary files
}

// remove removes all that lies on the disk and in memory.
func (b *bench) remove() error {
	var errs []error
	for _, dir := range []string{b.disk, b.memory} {
		if dir != "" {
			errs = append(errs, os.RemoveAll(dir))
		}
	}
	return join(errs...)
}

// machine makes a simulated machine, once.
func (b *bench) machine(name string) (*simulator.Machine, error) {
	spec, err := describe(name)
	if err != nil {
		return nil, err
	}
	return b.made(name, spec)
}

// newerDGX is a DGX H100 with the driver of the machine mps-v3, whose MPS has namespaces.
func (b *bench) newerDGX() (*simulator.Machine, error) {
	spec, err := describe("dgx-h100")
	if err != nil {
		return nil, err
	}
	newer, err := describe("mps-v3")
	if err != nil {
		return nil, err
	}
	spec.Driver = newer.Driver
	return b.made("dgx-h100-newer", spec)
}

func describe(name string) (simulator.Spec, error) {
	data, err := machines.Description(name)
	if err != nil {
		return simulator.Spec{}, err
	}
	return description.Parse(data)
}

func (b *bench) made(name string, spec simulator.Spec) (*simulator.Machine, error) {
	m, _, err := simulator.Create(filepath.Join(b.memory, name), spec)
	if err != nil {
		return nil, err
	}
	_, err = tree.Sync(m, tree.Built{Library: b.library, Tools: b.tools})
	return m, err
}

// dgx starts a registered agent on a DGX H100, and learns its devices' names.
func (b *bench) dgx(ctx context.Context, name string) (*agent, error) {
	m, err := b.machine("dgx-h100")
	if err != nil {
		return nil, err
	}
	return b.publishing(ctx, name, m)
}

// publishing is dgx for a DGX that was made, with more flags.
func (b *bench) publishing(ctx context.Context, name string, m *simulator.Machine, flags ...string) (*agent, error) {
	a, err := b.serveAgent(ctx, name, m, flags...)
	if err != nil {
		return nil, err
	}
	if b.devices, err = b.published(ctx); err != nil {
		return nil, join(err, a.stop())
	}
	return a, nil
}

// published waits until the pool is complete, and names its GPUs in order.
func (b *bench) published(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	devices, err := b.WaitGPUs(ctx, node, gpus)
	return slices.Sorted(maps.Keys(devices)), err
}
