package cdi

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	oci "github.com/opencontainers/runtime-spec/specs-go"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
	"tags.cncf.io/container-device-interface/pkg/cdi"

	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/hardware"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

var update = flag.Bool("update", false, "write the golden files")

// nicOf is the n-th NIC of an example; moves says that its interface goes into the Pod.
func nicOf(n uint8, moves bool) *NIC {
	address := machine.Address{Bus: 0x1a + n<<4}
	nic := &NIC{
		Name: "nic-" + address.Label(), RDMA: fmt.Sprintf("mlx5_%d", n),
		Nodes: []string{fmt.Sprintf("/dev/infiniband/uverbs%d", n), "/dev/infiniband/rdma_cm"}, TrafficClass: ptr.To(104),
	}
	if !moves {
		nic.GIDIndex = ptr.To(3)
		return nic
	}
	nic.Move = &hardware.NICMove{
		Home: machine.NICHome{
			Address: address, RDMA: nic.RDMA,
			Netdevs: []machine.NetdevHome{{Name: fmt.Sprintf("eth%d", n), MAC: fmt.Sprintf("b8:3f:d2:00:00:%02x", n), MTU: 4200, Up: true, Addresses: []string{"10.0.0.7/8"}}},
		},
		Name: fmt.Sprintf("rail%d", n), MTU: 9000,
	}
	return nic
}

func pairOf(n uint8) Device {
	nic := nicOf(n, true)
	return Device{Request: "pairs", Name: fmt.Sprintf("pair-%x0-00-%s", n+1, nic.Move.Home.Address.Label()), GPU: fmt.Sprintf("GPU-%d", n), NIC: nic}
}

// claims with NICs, whose specifications are in testdata.
func claimsWithNICs() map[string]Claim {
	of := func(devices ...Device) Claim {
		return Claim{UID: "0b7c", Record: []byte(`{"version":1}`), Devices: devices}
	}
	var pairs []Device
	for n := range uint8(8) {
		pairs = append(pairs, pairOf(n))
	}
	declared := of(pairOf(0))
	declared.Topology = []byte("<system version=\"1\">\n</system>\n")
	vf := nicOf(2, true)
	vf.Name = "vf-3a-00-3"
	return map[string]Claim{
		"nic":      of(Device{Request: "nic", Name: "nic-1a-00", NIC: nicOf(0, true)}),
		"rdma":     of(Device{Request: "r", Name: "rdma-1a-00", ShareID: "a", NIC: nicOf(0, false)}, Device{Request: "r", Name: "rdma-2a-00", ShareID: "b", NIC: nicOf(1, false)}),
		"vf":       of(Device{Request: "vf", Name: "vf-3a-00-3", NIC: vf}),
		"pair":     of(pairOf(0)),
		"pairs":    of(pairs...),
		"declared": declared,
		"mixed": of(Device{Request: "gpu", Name: "gpu-1b-00", GPU: "GPU-a"}, Device{Request: "nic/fast", Name: "nic-1a-00", NIC: nicOf(0, true)},
			Device{Request: "rdma", Name: "rdma-2a-00", ShareID: "s", NIC: nicOf(1, false)}),
		"a look": of(Device{Request: "all", Name: "nic-1a-00", AdminAccess: true, NIC: nicOf(0, false)}),
	}
}

func TestGoldenNICs(t *testing.T) {
	for name, c := range claimsWithNICs() {
		t.Run(name, func(t *testing.T) {
			s, dir := newStore(t, fakeEdits{})
			if err := s.Write(c); err != nil {
				t.Fatal(err)
			}
			content, err := os.ReadFile(filepath.Join(dir, "dovetail.dev-claim-0b7c.json"))
			if err != nil {
				t.Fatal(err)
			}
			got, err := yaml.JSONToYAML([]byte(strings.ReplaceAll(string(content), filepath.Dir(dir), "/plugin")))
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", strings.ReplaceAll(name, " ", "-")+".yaml")
			if *update {
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != string(want) {
				t.Errorf("the specification is not as in %s (-update writes it):\n%s", path, got)
			}
		})
	}
}

// inject gives a container devices of a claim, as a runtime does.
func inject(t *testing.T, c Claim, devices ...Device) *oci.Spec {
	t.Helper()
	s, dir := newStore(t, fakeEdits{})
	for i := range c.Devices { // nodes that are there, wherever the test runs
		if nic := c.Devices[i].NIC; nic != nil {
			nic.Nodes = []string{"/dev/zero", "/dev/null"}
		}
	}
	if err := s.Write(c); err != nil {
		t.Fatal(err)
	}
	cache, err := cdi.NewCache(cdi.WithSpecDirs(dir), cdi.WithAutoRefresh(false))
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, d := range devices {
		ids = append(ids, DeviceID(c.UID, d))
	}
	container := &oci.Spec{Process: &oci.Process{}, Linux: &oci.Linux{}}
	if _, err := cache.InjectDevices(container, ids...); err != nil {
		t.Fatal(err)
	}
	return container
}

// A container with several devices has each node and each variable once, knows all NICs,
// and has a hook for each that moves.
func TestContainerWithSeveralNICs(t *testing.T) {
	c := claimsWithNICs()["pairs"]
	container := inject(t, c, c.Devices...)
	paths := map[string]int{}
	for _, d := range container.Linux.Devices {
		if paths[d.Path]++; paths[d.Path] > 1 {
			t.Errorf("node %s is there %d times", d.Path, paths[d.Path])
		}
	}
	variables := map[string]string{}
	for _, e := range container.Process.Env {
		name, value, _ := strings.Cut(e, "=")
		if was, twice := variables[name]; twice {
			t.Errorf("%s is %s, and %s", name, was, value)
		}
		variables[name] = value
	}
	if got, want := variables["NCCL_IB_HCA"], "=mlx5_0,mlx5_1,mlx5_2,mlx5_3,mlx5_4,mlx5_5,mlx5_6,mlx5_7"; got != want {
		t.Errorf("NCCL_IB_HCA is %s, want %s", got, want)
	}
	if variables["NCCL_IB_TC"] != "104" || variables["DOVETAIL_NIC_1A_00"] != "mlx5_0" || variables["DOVETAIL_PAIR_10_00_1A_00"] != "GPU-0" {
		t.Errorf("variables %v", variables)
	}
	if got := len(container.Hooks.CreateRuntime); got != 8 {
		t.Errorf("%d hooks", got)
	}
	var order hardware.NICMove
	args := container.Hooks.CreateRuntime[3].Args
	text, _ := strings.CutPrefix(args[2], "--order=")
	if err := json.Unmarshal([]byte(text), &order); err != nil || order.Name != "rail3" || args[0] != "dovetail-hook" || args[1] != "nic" {
		t.Errorf("hook %q: %+v, %v", args, order, err)
	}
}

// A container that names one request sees nothing of the others' devices, and no driver
// of NVIDIA's where the claim has no GPU.
func TestContainerWithOneRequest(t *testing.T) {
	c := claimsWithNICs()["mixed"]
	container := inject(t, c, c.Devices[0])
	if container.Hooks != nil || slices.ContainsFunc(container.Process.Env, func(e string) bool { return strings.HasPrefix(e, "NCCL") }) {
		t.Errorf("a GPU's container has %q, %+v", container.Process.Env, container.Hooks)
	}
	c = claimsWithNICs()["nic"]
	container = inject(t, c, c.Devices...)
	if slices.ContainsFunc(container.Process.Env, func(e string) bool { return strings.HasPrefix(e, "NVIDIA") }) {
		t.Errorf("a NIC's container has %q", container.Process.Env)
	}
}

// Where sysfs and /dev are a simulated machine's.
func TestRootsOfNICs(t *testing.T) {
	n := NewNVIDIA(NVIDIAOptions{NodeRoot: "/sim", Hook: Hook{Path: "/opt/dovetail-hook", SysfsRoot: "/sim/sys"}})
	edits, err := n.NIC(nicOf(0, true))
	if err != nil {
		t.Fatal(err)
	}
	if args := edits.Hooks[0].Args; !slices.Equal(args[3:], []string{"--sysfs-root=/sim/sys"}) {
		t.Errorf("hook %q", args)
	}
	if node := edits.DeviceNodes[0]; node.HostPath != "/sim/dev/infiniband/uverbs0" || node.Path != "/dev/infiniband/uverbs0" || node.Permissions != "rw" {
		t.Errorf("node %+v", node)
	}
}

// The kernel would not start a hook with a longer argument, and nobody would know why.
func TestMoreRoutesThanAHookIsTold(t *testing.T) {
	nic := nicOf(0, true)
	order := func(routes int) ([]string, error) {
		nic.Move.Home.Netdevs[0].Routes = slices.Repeat([]machine.Route{{To: "10.100.200.0/24", Via: "10.100.100.254", Metric: 20, Protocol: 186}}, routes)
		hook, err := Hook{Path: "/bin/true"}.move(nic.Move)
		if err != nil {
			return nil, err
		}
		return hook.Args, nil
	}
	args, err := order(1500)
	if err != nil {
		t.Fatal(err)
	}
	if err := exec.Command("/bin/true", args...).Run(); err != nil {
		t.Error(err)
	}
	if _, err := order(2000); !errors.Is(err, failure.Unsupported) || !strings.Contains(err.Error(), "2000 routes") {
		t.Errorf("%v", err)
	}
}
