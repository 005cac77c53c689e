package nccl

import (
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/dovetail-dra/dovetail/pkg/machine"
)

func TestEnvironment(t *testing.T) {
	for name, test := range map[string]struct {
		own  NIC
		all  []NIC
		want []string
	}{
		"one": {NIC{RDMA: "mlx5_1"}, []NIC{{RDMA: "mlx5_1"}}, []string{"NCCL_IB_HCA==mlx5_1"}},
		"several, one of them twice": {
			NIC{RDMA: "mlx5_1", TrafficClass: ptr.To(104)}, []NIC{{RDMA: "mlx5_1"}, {RDMA: "mlx5_10"}, {RDMA: "mlx5_1"}},
			[]string{"NCCL_IB_HCA==mlx5_1,mlx5_10", "NCCL_IB_TC=104"},
		},
		"one GID index": {
			NIC{RDMA: "a", TrafficClass: ptr.To(0)}, []NIC{{RDMA: "a", GIDIndex: ptr.To(3)}, {RDMA: "b", GIDIndex: ptr.To(3)}},
			[]string{"NCCL_IB_HCA==a,b", "NCCL_IB_TC=0", "NCCL_IB_GID_INDEX=3"},
		},
		"two GID indices":     {NIC{RDMA: "a"}, []NIC{{RDMA: "a", GIDIndex: ptr.To(3)}, {RDMA: "b", GIDIndex: ptr.To(5)}}, []string{"NCCL_IB_HCA==a,b"}},
		"one that may change": {NIC{RDMA: "a"}, []NIC{{RDMA: "a", GIDIndex: ptr.To(3)}, {RDMA: "b"}}, []string{"NCCL_IB_HCA==a,b"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Environment(test.own, test.all); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func at(bus uint8) machine.Address { return machine.Address{Bus: bus} }

// flat is a place in a machine that hides its tree.
func flat(numa int) machine.Location { return machine.Location{PCIeRoot: "pci0000:00", NUMANode: numa} }

func behind(numa int, bridges ...uint8) machine.Location {
	l := machine.Location{PCIeRoot: "pci0000:15", NUMANode: numa}
	for _, b := range bridges {
		l.Bridges = append(l.Bridges, at(b))
	}
	return l
}

func TestTopology(t *testing.T) {
	for name, test := range map[string]struct {
		devices []Device
		want    string
	}{
		"two declared pairs": {
			[]Device{
				{at(2), ClassGPU, flat(-1), ptr.To(at(0x12))}, {at(0x12), ClassEthernet, flat(1), ptr.To(at(2))},
				{at(1), ClassGPU, flat(0), ptr.To(at(0x11))}, {at(0x11), ClassEthernet, flat(0), ptr.To(at(1))},
			}, `<system version="1">
  <cpu numaid="0">
    <pci busid="ffff:ff:00.0" class="0x060400" link_speed="32 GT/s" link_width="16">
      <pci busid="0000:01:00.0" class="0x030200"/>
      <pci busid="0000:11:00.0" class="0x020000"/>
    </pci>
  </cpu>
  <cpu numaid="1">
    <pci busid="ffff:ff:01.0" class="0x060400" link_speed="32 GT/s" link_width="16">
      <pci busid="0000:02:00.0" class="0x030200"/>
      <pci busid="0000:12:00.0" class="0x020000"/>
    </pci>
  </cpu>
</system>
`,
		},
		"two GPUs beside one NIC, and a GPU alone": {
			[]Device{
				{at(1), ClassGPU, flat(-1), ptr.To(at(0x11))}, {at(0x11), ClassInfiniBand, flat(-1), ptr.To(at(1))},
				{at(2), ClassGPU, flat(-1), ptr.To(at(0x11))}, {at(0x11), ClassInfiniBand, flat(-1), ptr.To(at(2))},
				{at(3), ClassGPU, flat(-1), nil},
			}, `<system version="1">
  <cpu numaid="-1">
    <pci busid="0000:03:00.0" class="0x030200"/>
    <pci busid="ffff:ff:00.0" class="0x060400" link_speed="32 GT/s" link_width="16">
      <pci busid="0000:01:00.0" class="0x030200"/>
      <pci busid="0000:02:00.0" class="0x030200"/>
      <pci busid="0000:11:00.0" class="0x020700"/>
    </pci>
  </cpu>
</system>
`,
		},
		"as the machine has it": {
			[]Device{
				{at(0x20), ClassGPU, behind(0, 0x15, 0x16, 0x17), nil}, {at(0x30), ClassEthernet, behind(0, 0x15, 0x16, 0x18), nil},
				{at(0x40), ClassEthernet, behind(0, 0x15, 0x16, 0x19, 0x1a, 0x1b), nil}, {at(0x50), ClassGPU, behind(1, 0x51), nil},
			}, `<system version="1">
  <cpu numaid="0">
    <pci busid="0000:16:00.0" class="0x060400">
      <pci busid="0000:1a:00.0" class="0x060400">
        <pci busid="0000:40:00.0" class="0x020000"/>
      </pci>
      <pci busid="0000:20:00.0" class="0x030200"/>
      <pci busid="0000:30:00.0" class="0x020000"/>
    </pci>
  </cpu>
  <cpu numaid="1">
    <pci busid="0000:50:00.0" class="0x030200"/>
  </cpu>
</system>
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := string(Topology(test.devices))
			if got != test.want {
				t.Errorf("got\n%s", got)
			}
			valid(t, got)
			slices.Reverse(test.devices)
			if again := string(Topology(test.devices)); again != got {
				t.Errorf("in another order\n%s", again)
			}
		})
	}
}

// The largest machine there is must stay within what NCCL's parser takes.
func TestTopologyOfMany(t *testing.T) {
	var devices []Device
	for i := range uint8(16) {
		devices = append(devices, Device{at(i), ClassGPU, flat(0), ptr.To(at(0x80 + i))}, Device{at(0x80 + i), ClassEthernet, flat(0), ptr.To(at(i))})
	}
	valid(t, string(Topology(devices)))
}

// What NCCL's parser has room for (nccl, src/graph/xml.h), by its oldest values.
const (
	mostNodes      = 256
	mostSubs       = 32
	mostAttributes = 16
	longest        = 255
)

var (
	busID = regexp.MustCompile(`^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]$`)
	class = regexp.MustCompile(`^0x[0-9a-f]{6}$`)
)

// valid checks the rules of the format (nccl, src/graph/xml.cc and topo.cc): what stands
// within what, what each element must say, and how much there may be.
func valid(t *testing.T, content string) {
	t.Helper()
	within := map[string][]string{"system": {""}, "cpu": {"system"}, "pci": {"cpu", "pci"}}
	var above []string
	subs := []int{0}
	nodes, seen := 0, map[string]bool{}
	for d := xml.NewDecoder(strings.NewReader(content)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			parent := ""
			if len(above) > 0 {
				parent = above[len(above)-1]
			}
			if !slices.Contains(within[e.Name.Local], parent) {
				t.Errorf("%s within %q", e.Name.Local, parent)
			}
			attributes := map[string]string{}
			for _, a := range e.Attr {
				attributes[a.Name.Local] = a.Value
				if len(a.Value) > longest || len(e.Attr) > mostAttributes {
					t.Errorf("%s: attribute %s is too long, or one too many", e.Name.Local, a.Name.Local)
				}
			}
			switch e.Name.Local {
			case "system":
				if attributes["version"] != "1" {
					t.Errorf("version %q", attributes["version"])
				}
			case "cpu":
				if attributes["numaid"] == "" || seen["cpu"+attributes["numaid"]] {
					t.Errorf("cpu with numaid %q", attributes["numaid"])
				}
				seen["cpu"+attributes["numaid"]] = true
			case "pci":
				id := attributes["busid"]
				if !busID.MatchString(id) || seen[id] || !class.MatchString(attributes["class"]) {
					t.Errorf("pci with busid %q, class %q", id, attributes["class"])
				}
				seen[id] = true
			}
			above, nodes = append(above, e.Name.Local), nodes+1
			subs[len(subs)-1]++
			if subs = append(subs, 0); nodes > mostNodes || subs[len(subs)-2] > mostSubs {
				t.Errorf("too many elements: %d, %d in one", nodes, subs[len(subs)-2])
			}
		case xml.EndElement:
			above, subs = above[:len(above)-1], subs[:len(subs)-1]
		}
	}
	if nodes == 0 {
		t.Error("it is empty")
	}
}
