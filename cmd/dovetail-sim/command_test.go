package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// run runs the program, and returns what it printed.
func run(args ...string) (string, error) {
	cmd := newRoot()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	err := cmd.Execute()
	return out.String(), err
}

func TestStory(t *testing.T) {
	root := t.TempDir()
	for _, step := range []struct{ args, want string }{
		{"create dgx-h100", "machine dgx-h100 (8 GPUs, driver 570.195.03, 9 NICs) made"},
		{"create dgx-h100", "is there already"},
		{"show", "0000:1b:00.0  h100-sxm5-80gb"},
		{"lose 0000:52:00.0", ""},
		{"show", "lost"},
		{"restore 2", ""},
		{"no-memory-limits 2", ""},
		{"show", "no-memory-limits"},
		{"restore 2", ""},
		{"xid 1 48", ""},
		{"show", "asks for a reset"},
		{"reset 1", ""},
		{"slow 0 nvmlDeviceGetName 2s", ""},
		{"show", "nvmlDeviceGetName slower by 2s"},
		{"slow 0 nvmlDeviceGetName 0", ""},
		{"mig on 0", ""},
		{"mig make 0 3g.40gb --start 0", "instance 1 at 0: MIG-"},
		{"mig make 0 3g.40gb", "instance 2 at 4: MIG-"},
		{"mig destroy 0 1", ""},
		{"mig list 0", "3g.40gb  4"},
		{"mig list", "3g.40gb  4"},
		{"show", "3g.40gb  4"},
		{"mig destroy 0 2", ""},
		{"fail 0 nvmlDeviceSetMigMode --times 2 --error in-use", ""},
		{"show", "nvmlDeviceSetMigMode fails 2 times: in-use"},
		{"fail 0 nvmlDeviceSetMigMode --times 0", ""},
		{"mig off 0", ""},
		{"show", "0000:18:00.0  connectx-7  mlx5_core  mlx5_0  enp24s0np0   0 of 0  well"},
		{"nics down mlx5_0", ""},
		{"show", "no link"},
		{"nics up 0000:18:00.0", ""},
		{"nics unplug enp24s0np0", ""},
		{"show", "unplugged"},
		{"nics plug mlx5_0", ""},
		{"nics rdma exclusive", ""},
		{"nics rdma shared", ""},
		{"slow mlx5_0 BringHome 1s", ""},
		{"show", "BringHome slower by 1s"},
		{"slow mlx5_0 BringHome 0", ""},
		{"driver unload", "removed"},
		{"show", "unloaded"},
		{"driver uninstall", "removed"},
		{"driver load", "written"},
		{"reboot", "written"},
	} {
		output, err := run(append(strings.Fields(step.args), "--root", root)...)
		if err != nil || !strings.Contains(output, step.want) {
			t.Fatalf("%s: %v\n%s\nwant %q", step.args, err, output, step.want)
		}
	}
	if output, err := run("show", "--root", root); err != nil || strings.Count(output, "well") != 8+9 {
		t.Errorf("in the end: %v\n%s", err, output)
	}
}

func TestMistakes(t *testing.T) {
	root := t.TempDir()
	if _, err := run("create", "t4", "--root", root); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(file, []byte("name: x\ndriver: {version: v1}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"lose 7":                       `machine "t4" has no GPU "7": name one by index (0 to 0), UUID or PCI address`,
		"xid 0 none":                   `NUMBER "none" is not an Xid`,
		"slow 0 * soon":                `DURATION "soon": write one such as 150ms`,
		"slow 0 * -- -1s":              "is negative",
		"create dgx":                   `no machine is called "dgx": use one of a30`,
		"create " + file:               `driver.version: "v1" is not a driver version`,
		"create t4 --library /no/such": "build it from ./cmd/libnvidia-ml",
		"create --root / t4":           "would overwrite this computer's own files",
		"mig on 0":                     "model t4 has no MIG",
		"mig make 0 1g.5gb":            "model t4 has no MIG",
		"mig destroy 0 first":          `INSTANCE "first" is not a GPU instance's ID`,
		"mig destroy 0 1":              "has no GPU instance 1",
		"mig list 1":                   "has no GPU",
		"fail 0 x --error y":           `error "y" is unknown`,
		"fail 0 x --times -1":          "give 0 or more",
		"hold 1":                       "has no GPU",
		"hold 0 --instance 1":          "has no GPU instance 1",
		"hold 0 --compute-instance 1":  "give --instance, too",
		"nics down mlx5_0":             `machine "t4" has no NIC "mlx5_0"`,
		"nics vfs 0 many":              `NUMBER "many" is no number of virtual functions`,
		"nics rdma mine":               `invalid argument "mine"`,
		"lose":                         "accepts 1 arg(s)",
	} {
		if _, err := run(append([]string{"--root", root}, strings.Fields(args)...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want one with %q", args, err, want)
		}
	}
	if _, err := run("show", "--root", t.TempDir()); err == nil || !strings.Contains(err.Error(), "dovetail-sim create") {
		t.Errorf("without a machine: %v", err)
	}
}

func TestNICs(t *testing.T) {
	root := t.TempDir()
	for _, step := range []struct{ args, want string }{
		{"create sriov", "machine sriov (2 GPUs, driver 570.195.03, 2 NICs) made"},
		{"show", "4 of 16"},
		{"nics vfs mlx5_0 0", ""},
		{"nics vfs mlx5_1 12", ""},
		{"show", "12 of 64"},
		{"create nic-only", "machine nic-only (2 NICs) made"},
		{"show", "no GPUs"},
		{"show", "enp49s0np0"},
	} {
		output, err := run(append(strings.Fields(step.args), "--root", root)...)
		if err != nil || !strings.Contains(output, step.want) {
			t.Fatalf("%s: %v\n%s\nwant %q", step.args, err, output, step.want)
		}
	}
	if _, err := run("driver", "load", "--root", root); err == nil || !strings.Contains(err.Error(), "has no GPUs") {
		t.Errorf("a driver without GPUs: %v", err)
	}
}

func TestNamesMakeUUIDs(t *testing.T) {
	show := func(name string) string {
		root := t.TempDir()
		if _, err := run("create", "t4", "--name", name, "--root", root); err != nil {
			t.Fatal(err)
		}
		output, err := run("show", "--root", root)
		if err != nil {
			t.Fatal(err)
		}
		return output[strings.Index(output, "GPU-"):]
	}
	first, again, other := show("a"), show("a"), show("b")
	if first == other || first != again {
		t.Error("UUIDs do not follow the machine's name")
	}
}
