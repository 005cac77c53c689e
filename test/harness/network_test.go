package harness

import (
	"encoding/json"
	"testing"

	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/plan"
	"github.com/dovetail-dra/dovetail/pkg/simulator"
)

// newNICScene is a node on which one Pod runs with a pair of GPU-a and the first of two
// NICs; the second has a virtual function. All is as it should be.
func newNICScene(t *testing.T) *scene {
	t.Helper()
	raw := func(value any) json.RawMessage { return marshalled(t, value) }
	nics := []simulator.NICSpec{
		{Address: machine.Address{Bus: 0x18}, Model: "connectx-7", Driver: "mlx5_core", RDMA: "mlx5_0", Netdevs: []simulator.NetdevSpec{{Name: "en0", MAC: "02:00:00:00:00:01", MTU: 9000}}},
		{Address: machine.Address{Bus: 0x19}, Model: "connectx-7", Driver: "mlx5_core", RDMA: "mlx5_1", MaxVFs: 1, Netdevs: []simulator.NetdevSpec{{
			Name: "enp25s0np0", MAC: "02:00:00:00:00:02", MTU: 9000, Addresses: []string{"10.1.0.1/16"}, Routes: []machine.Route{{To: "10.2.0.0/16", Via: "10.1.0.2"}},
		}}},
	}
	record, err := journal.Marshal(&journal.Entry{
		Claim: journal.Claim{Namespace: "ns", Name: "c", UID: uid}, Holds: []string{"gpu-1b-00", "gpu-1b-00/memory-unit-0", "nic-18-00"},
		Detail: raw(map[string]any{"devices": []plan.Device{{
			Request: "r", Name: "pair-1b-00-18-00", Kind: machine.KindPair, GPU: "GPU-a", NIC: &plan.NIC{Name: "nic-18-00", Reserved: true},
		}}}),
		Steps: []journal.Step{{
			Intent:  raw(plan.Step{Kind: plan.ReserveNIC, Device: "nic-18-00", Reserved: &machine.Reserved{Function: nics[0].Address}}),
			Outcome: json.RawMessage(`{"done":true}`),
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	vf := simulator.VFAddress(nics[1].Address, 0)
	s := newScene(t)
	s.claim.Status.Allocation.Devices.Results[0].Device = "pair-1b-00-18-00"
	s.snapshot.Files[ClaimsDir+"/"+uid+".json"] = record
	s.snapshot.Files[topologyDir+"/"+uid+".xml"] = []byte("<system/>")
	s.snapshot.Machine = &simulator.State{
		Spec: simulator.Spec{Name: "m", GPUs: []simulator.GPUSpec{{UUID: "GPU-a", Address: machine.Address{Bus: 0x1b}, Model: model}}, NICs: nics},
		GPUs: []simulator.GPUState{{ComputeMode: machine.ComputeModeDefault}},
		NICs: []simulator.NICState{
			{FunctionState: simulator.FunctionState{Netdevs: []simulator.NetdevState{{Name: "en0", Namespace: "netns-7"}}}},
			{VFs: []simulator.FunctionState{{Netdevs: []simulator.NetdevState{{Name: "enp25s0v0"}}}}},
		},
	}
	err = s.snapshot.parseNetwork(`[
		{"ifname": "enp25s0np0", "address": "02:00:00:00:00:02", "mtu": 9000, "flags": ["BROADCAST", "UP"], "addr_info": [
			{"local": "10.1.0.1", "prefixlen": 16}, {"local": "fe80::1", "prefixlen": 64}]},
		{"ifname": "enp25s0v0", "address": "`+simulator.MAC("m", vf, 0)+`", "mtu": 1500, "flags": ["BROADCAST"]}
	]`, `[{"dst": "10.2.0.0/16", "gateway": "10.1.0.2", "dev": "enp25s0np0", "metric": 7}]`)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNetworkInvariantsCanFail(t *testing.T) {
	finds(t, newNICScene, []sceneTest{
		{"all is well", func(*scene) {}, nil},
		{"another device", func(s *scene) { s.claim.Status.Allocation.Devices.Results[0].Device = "gpu-1b-00" }, []string{"holds [pair-1b-00-18-00]"}},
		{"left over", func(s *scene) { delete(s.snapshot.Files, ClaimsDir+"/"+uid+".json") }, []string{
			"not in the journal", "but is not in the journal", "interface of NIC 0000:18:00.0 (en0, 02:00:00:00:00:01) is not on the node",
		}},
		{"RDMA device elsewhere", func(s *scene) { s.snapshot.Machine.NICs[1].RDMANamespace = "netns-7" }, []string{"RDMA device of NIC 0000:19:00.0 is in netns-7"}},
		{"another name", func(s *scene) { s.snapshot.Interfaces[0].Name, s.snapshot.Routes[0].Through = "dev0", "dev0" }, []string{"is called dev0, want enp25s0np0"}},
		{"another MTU", func(s *scene) { s.snapshot.Interfaces[0].MTU = 1500 }, []string{"has MTU 1500"}},
		{"down", func(s *scene) { s.snapshot.Interfaces[0].Flags = nil }, []string{"up: false, want 9000 and true"}},
		{"no address", func(s *scene) { s.snapshot.Interfaces[0].Addresses = nil }, []string{"has addresses [], want [10.1.0.1/16]"}},
		{"no route", func(s *scene) { s.snapshot.Routes[0].Via = "10.1.0.3" }, []string{"route to 10.2.0.0/16"}},
		{"a virtual function that came back", func(s *scene) { s.snapshot.Interfaces[1].Name = "dev0" }, []string{"VF 0000:19:00.1 is called dev0"}},
		{"NCCL's file", func(s *scene) { s.snapshot.Files[topologyDir+"/another.xml"] = nil }, []string{"NCCL's file of a claim that no Pod has"}},
	})
}
