package selector

import (
	"slices"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/utils/ptr"
)

func list(t *testing.T, expressions ...string) List {
	t.Helper()
	var selectors []resourceapi.DeviceSelector
	for _, e := range expressions {
		selectors = append(selectors, resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: e}})
	}
	l, err := CompileAll(selectors)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestReading(t *testing.T) {
	const ours = `device.driver == "dovetail.dev"`
	for name, test := range map[string]struct {
		expression   string
		ours         bool
		kind, memory string
		reads        []string
		opaque       bool
	}{
		"the chart's":          {ours + ` && device.attributes["dovetail.dev"].type == "mig"`, true, "mig", "", []string{"type"}, false},
		"the other way round":  {`"mps" == device.attributes["dovetail.dev"].type`, true, "mps", "", []string{"type"}, false},
		"by index":             {`device.attributes["dovetail.dev"]["type"] == "mps"`, true, "mps", "", []string{"type"}, false},
		"optional":             {`device.attributes["dovetail.dev"].?type.orValue("") == "mps"`, true, "mps", "", []string{"type"}, false},
		"optional and nothing": {`device.attributes["dovetail.dev"].?type.orValue("") == ""`, false, "", "", []string{"type"}, false},
		"another driver":       {`device.driver == "gpu.example.com"`, false, "", "", nil, false},
		"another's attribute":  {`device.attributes["gpu.example.com"].type == "mig"`, false, "", "", []string{"gpu.example.com/type"}, false},
		"one or the other":     {ours + ` || device.driver == "gpu.example.com"`, false, "", "", nil, false},
		"not ours":             {`!(` + ours + `)`, false, "", "", nil, false},
		"one of several types": {ours + ` && device.attributes["dovetail.dev"].type in ["mps", "gpu"]`, true, "", "", []string{"type"}, false},
		"memory":               {`device.capacity["dovetail.dev"].memory.compareTo(quantity("15Gi")) >= 0`, false, "", "15Gi", nil, false},
		"more memory":          {`device.capacity["dovetail.dev"].memory.isGreaterThan(quantity("15Gi"))`, false, "", "15Gi", nil, false},
		"less memory":          {`device.capacity["dovetail.dev"].memory.compareTo(quantity("15Gi")) < 0`, false, "", "", nil, false},
		"another's memory":     {`device.capacity["gpu.example.com"].memory.compareTo(quantity("15Gi")) >= 0`, false, "", "", nil, false},
		"shares only":          {`device.allowMultipleAllocations == true && ` + ours, true, "", "", nil, false},
		"inside a call":        {`device.attributes["dovetail.dev"].productName.startsWith("NVIDIA")`, false, "", "", []string{"productName"}, false},
		"a standard attribute": {`device.attributes["resource.kubernetes.io"].pcieRoot == "pci0000:17"`, false, "", "", []string{"resource.kubernetes.io/pcieRoot"}, false},
		"all that there is":    {`device.attributes["dovetail.dev"].exists(name, name == "type")`, false, "", "", nil, true},
		"whether it is there":  {`"type" in device.attributes["dovetail.dev"]`, false, "", "", nil, true},
		"has":                  {`has(device.attributes["dovetail.dev"].type)`, false, "", "", []string{"type"}, false},
		"a name that is made":  {`device.attributes["dovetail.dev"]["ty" + "pe"] == "mig"`, false, "", "", nil, true},
		"under another name":   {`cel.bind(d, device.attributes["dovetail.dev"], d.type == "mig")`, false, "", "", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := list(t, test.expression)
			memory := ""
			if m := l.Memory(); m != nil {
				memory = m.String()
			}
			if l.Ours() != test.ours || string(l.Kind()) != test.kind || memory != test.memory {
				t.Errorf("ours %v, kind %q, memory %q; want %v, %q, %q", l.Ours(), l.Kind(), memory, test.ours, test.kind, test.memory)
			}
			if others := name == "another driver"; l.Others() != others {
				t.Errorf("another driver's: %v, want %v", l.Others(), others)
			}
			if reads, ok := l.Reads(); ok == test.opaque || !slices.Equal(reads, test.reads) {
				t.Errorf("reads %q, all of it: %v; want %q, %v", reads, ok, test.reads, !test.opaque)
			}
		})
	}
}

func TestTakes(t *testing.T) {
	l := list(t, `device.driver == "dovetail.dev"`, `device.attributes["dovetail.dev"].profile == "1g.10gb"`)
	device := func(driver, profile string) cel.Device {
		return cel.Device{Driver: driver, Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"profile": {StringValue: ptr.To(profile)}}}
	}
	for _, test := range []struct {
		device cel.Device
		want   bool
	}{
		{device("dovetail.dev", "1g.10gb"), true},
		{device("dovetail.dev", "2g.20gb"), false},
		{device("gpu.example.com", "1g.10gb"), false},
	} {
		if got, err := l.Takes(t.Context(), test.device); err != nil || got != test.want {
			t.Errorf("%+v: %v, %v", test.device, got, err)
		}
	}
	if _, err := l.Takes(t.Context(), cel.Device{Driver: "dovetail.dev"}); err == nil {
		t.Error("an attribute that is not there is no error")
	}
	if _, err := Compile("device.attributes["); err == nil {
		t.Error("half an expression compiles")
	}
}
