package main

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
)

type attributes = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute

// with are attributes and some more, as pairs of name and text.
func with(more attributes, texts ...string) attributes {
	a := maps.Clone(more)
	if a == nil {
		a = attributes{}
	}
	for i := 0; i < len(texts); i += 2 {
		a[resourceapi.QualifiedName(texts[i])] = resourceapi.DeviceAttribute{StringValue: &texts[i+1]}
	}
	return a
}

func pieces(class string, a attributes, names ...string) []piece {
	var all []piece
	for i, name := range names {
		a := maps.Clone(a)
		a["resource.kubernetes.io/numaNode"] = resourceapi.DeviceAttribute{IntValue: ptr.To(int64(2*i) / int64(len(names)))}
		all = append(all, piece{class: class, Device: resourceapi.Device{Name: name, Attributes: a, Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
			"memory": {Value: resource.MustParse("80Gi")},
		}}})
	}
	return all
}

var (
	h100 = with(nil, "productName", "NVIDIA H100 80GB HBM3")
	part = with(nil, "productName", "NVIDIA A30", "profile", "2g.12gb")
	nic  = with(attributes{"speed": {IntValue: ptr.To[int64](400)}}, "model", "MT4129", "rdmaDevice", "mlx5_0")
	pair = with(nic, "productName", "NVIDIA H100 80GB HBM3", "closeness", "PIX")
)

func TestDescribe(t *testing.T) {
	for _, test := range []struct {
		pieces []piece
		want   string
	}{
		{pieces("gpu.dovetail.dev", h100, "gpu-1b-00"), "gpu-1b-00 (H100 80GB HBM3, 80 GiB), NUMA node 0"},
		{pieces("gpu.dovetail.dev", h100, "gpu-1b-00", "gpu-9d-00"), "gpu-1b-00 gpu-9d-00 (H100 80GB HBM3, 80 GiB), NUMA node 0 and 1"},
		{pieces("small", part, "mig-a1-00-2g12gb-0"), "mig-a1-00-2g12gb-0 (A30 2g.12gb, 80 GiB), NUMA node 0"},
		{pieces("nic.dovetail.dev", nic, "nic-18-00"), "nic-18-00 (NIC MT4129, 400 Gb/s), NUMA node 0"},
		{pieces("trainer", pair, "pair-1b-00-18-00"), "pair-1b-00-18-00 (H100 80GB HBM3, 80 GiB and NIC MT4129, 400 Gb/s, PIX), NUMA node 0"},
		{append(pieces("a", h100, "gpu-1b-00"), pieces("b", nic, "nic-18-00")...), "gpu-1b-00 nic-18-00, NUMA node 0"},
	} {
		if got := describe(test.pieces); got != test.want {
			t.Errorf("got  %q\nwant %q", got, test.want)
		}
	}
}

// TestTable: whatever Pods of the demo hold, a line has room in a window of 120.
func TestTable(t *testing.T) {
	var to strings.Builder
	table(&to, []holding{
		{scenario: scenario{file: "1-one.yaml"}, pod: "train", pieces: pieces("gpu.dovetail.dev", h100, "gpu-1b-00"), took: 600 * time.Millisecond},
		{scenario: scenario{file: "8-all.yaml"}, pod: "monitor", pieces: pieces("monitor.dovetail.dev", h100, "monitor-1b-00", "monitor-43-00", "monitor-9d-00")},
		{scenario: scenario{file: "12-pairs.yaml"}, pod: "serve-7c6745c788-fjrt4", pieces: slices.Concat(
			pieces("trainer", pair, "pair-1b-00-18-00"), pieces("trainer", with(pair, "rdmaDevice", "mlx5_11"), "pair-9d-00-9a-00"))},
		{scenario: scenario{file: "13-day.yaml"}, pod: "notebook", pieces: pieces("small", part, "mig-a1-00-2g12gb-0")},
	})
	want := `
  NO  POD                     CLASS                 DEVICE               GPU             NIC               NUMA  AFTER
  1   train                   gpu.dovetail.dev      gpu-1b-00            H100 80GB HBM3  -                 0     0.6 s
  8   monitor                 monitor.dovetail.dev  monitor-1b-00 +2     H100 80GB HBM3  -                 0, 1  0.0 s
  12  serve-7c6745c788-fjrt4  trainer               pair-1b-00-18-00 +1  H100 80GB HBM3  MT4129 mlx5_0 +1  0     0.0 s
  13  notebook                small                 mig-a1-00-2g12gb-0   A30             -                 0     0.0 s
`
	if got := "\n" + to.String(); got != want {
		t.Errorf("got%s\nwant%s", got, want)
	}
	for line := range strings.Lines(to.String()) {
		if len(line) > 121 {
			t.Errorf("%d wide: %s", len(line)-1, line)
		}
	}
}

func TestStock(t *testing.T) {
	class := &v1alpha1.PartitionClass{Status: v1alpha1.PartitionClassStatus{DeviceClass: "small", Devices: 18, Allocated: 3, Free: 12}}
	class.Name = "small"
	held := []holding{
		{pieces: pieces("small", part, "a", "b")}, {pieces: pieces("other", part, "c")},
		{pieces: pieces("small", with(nic, "productName", "NVIDIA H100 NVL"), "d")},
	}
	for want, held := range map[string][]holding{
		"small: 18 devices, 3 allocated, 12 free":                                               nil,
		"small: 18 devices, 3 allocated (2 of A30 2g.12gb, 1 of H100 NVL with MT4129), 12 free": held,
	} {
		if got := stock(class, held); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}
