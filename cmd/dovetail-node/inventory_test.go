package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"

	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

// execute runs the command line on a simulated machine.
func execute(t *testing.T, machine string, args ...string) (string, error) {
	t.Helper()
	m := simulatortest.NewWithLibrary(t, machine)
	var out bytes.Buffer
	root := newRoot()
	root.SetOut(&out)
	root.SetArgs(append(args, "--driver-root", m.Root(), "--sysfs-root", m.Root()+"/sys", "--proc-root", m.Root()+"/proc"))
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func TestInventoryForPeople(t *testing.T) {
	out, err := execute(t, "broken", "inventory")
	if err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{"Driver ", "DEVICE", "gpu-", "unknown", "bus", "reset"} {
		if !strings.Contains(out, words) {
			t.Errorf("%q is not in\n%s", words, out)
		}
	}
}

func TestInventoryForPrograms(t *testing.T) {
	for format, unmarshal := range map[string]func([]byte, any) error{
		"json": json.Unmarshal,
		"yaml": func(content []byte, into any) error { return yaml.UnmarshalStrict(content, into) },
	} {
		out, err := execute(t, "sixteen", "inventory", "--output", format, "--node-name", "node-7")
		if err != nil {
			t.Fatal(err)
		}
		var list resourceapi.ResourceSliceList
		if err := unmarshal([]byte(out), &list); err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		devices := 0
		for _, s := range list.Items {
			devices += len(s.Spec.Devices)
			if s.Spec.Pool.Name != "node-7" || int(s.Spec.Pool.ResourceSliceCount) != len(list.Items) {
				t.Errorf("%s: pool %+v of %d slices", format, s.Spec.Pool, len(list.Items))
			}
		}
		if devices != 16+16 { // GPUs and monitors
			t.Errorf("%s: %d devices", format, devices)
		}
	}
}

func TestBadFlagsAreNamed(t *testing.T) {
	for args, words := range map[string]string{
		"inventory --output xml":                       `--output: "xml" is not known: want table, yaml or json`,
		"run --node-name= --pod-uid=":                  "--node-name: is empty",
		"run --node-name=a --unhealthy-effect=Execute": `--unhealthy-effect: "Execute" is not known`,
		"run surplus":                                  "surplus",
	} {
		if _, err := execute(t, "t4", strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: error %v", args, err)
		}
	}
}
