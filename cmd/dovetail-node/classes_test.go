package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/classwatch"
	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

const twoClasses = `
apiVersion: dovetail.dev/v1alpha1
kind: PartitionClass
metadata: {name: third}
spec: {shape: {mig: {profile: 3g.40gb}}}
---
apiVersion: v1
kind: List
items:
- apiVersion: dovetail.dev/v1alpha1
  kind: PartitionClass
  metadata: {name: shared}
  spec: {shape: {mps: {memory: 10Gi, compute: 25}}, hardware: {products: ["*H100*"]}}
`

// classFile has the content.
func classFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "classes.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestInventoryOfClasses(t *testing.T) {
	m := simulatortest.NewWithLibrary(t, "dgx-h100")
	out, err := executeOn(t, m, "inventory", "--classes", classFile(t, twoClasses))
	if err != nil {
		t.Fatal(err)
	}
	contains(t, out, "mps        shared  10.0 GiB  25%      48       BestEffort       8\n",
		"no PartitionClass (third, shared) asks for, and that are not published:\n  gpu-1b-00 gpu-43-00", " 1g.10gb 1g.10gb+me ", "7g.80gb\n")
	if strings.Contains(out, "3g.40gb") {
		t.Errorf("3g.40gb is asked for:\n%s", out)
	}
	out, err = executeOn(t, m, "inventory", "-o", "yaml", "--classes", classFile(t, twoClasses))
	if err != nil {
		t.Fatal(err)
	}
	if contains(t, out, "mig-1b-00-3g40gb-4", "mps-1b-00-shared"); strings.Contains(out, "1g10gb") {
		t.Error("partitions that no class asks for are in the slices")
	}
	if out, err = executeOn(t, m, "inventory"); err != nil || strings.Contains(out, "PartitionClass") {
		t.Errorf("without classes: %v\n%s", err, out)
	}
}

// Beside an agent it goes by what the agent goes by: its classes, its node's labels, and
// its claims.
func TestInventoryBesideAnAgent(t *testing.T) {
	m := simulatortest.NewWithLibrary(t, "dgx-h100")
	dir := filepath.Join(m.Root(), "plugin")
	records, err := journal.Open(filepath.Join(dir, "claims"))
	if err != nil {
		t.Fatal(err)
	}
	state, err := m.State()
	if err != nil {
		t.Fatal(err)
	}
	entry := &journal.Entry{Claim: journal.Claim{Namespace: "default", Name: "a", UID: "uid-a"}, BootID: state.BootID, Joins: map[string]string{"gpu-1b-00": "mps-1b-00-gone"}}
	if err := records.Put(entry); err != nil {
		t.Fatal(err)
	}
	known := classwatch.Known{NodeLabels: map[string]string{"pool": "a"}}
	for _, pool := range []string{"a", "b"} {
		known.Classes = append(known.Classes, v1alpha1.PartitionClass{
			ObjectMeta: metav1.ObjectMeta{Name: "in-" + pool},
			Spec: v1alpha1.PartitionClassSpec{
				Shape:    v1alpha1.Shape{MIG: &v1alpha1.MIGShape{Profile: map[string]string{"a": "3g.40gb", "b": "1g.10gb"}[pool]}},
				Hardware: v1alpha1.Selection{NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"pool": pool}}},
			},
		})
	}
	if err := known.Write(dir); err != nil {
		t.Fatal(err)
	}
	out, err := executeOn(t, m, "inventory")
	if err != nil {
		t.Fatal(err)
	}
	contains(t, out, ": 1g.10gb 1g.10gb+me ", "they go when their claims are released:\n  mps-1b-00-gone\n")
	if strings.Contains(out, "3g.40gb") {
		t.Errorf("3g.40gb is asked for:\n%s", out)
	}
}

// Which labels the node has is not known without an agent, and not passed over in silence.
func TestInventoryOfClassesForSomeNodes(t *testing.T) {
	m := simulatortest.NewWithLibrary(t, "dgx-h100")
	file := classFile(t, strings.ReplaceAll(twoClasses, `products: ["*H100*"]`, `nodeSelector: {matchLabels: {pool: a}}`))
	out, err := executeOn(t, m, "inventory", "--classes", file)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, out, "the node's labels are not known", "with a nodeSelector (shared) count as other nodes'")
	if strings.Contains(out, "mps        shared") {
		t.Errorf("a size of other nodes is offered:\n%s", out)
	}
	dir := filepath.Join(m.Root(), "plugin")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	known := classwatch.Known{NodeLabels: map[string]string{"pool": "a"}}
	if err := known.Write(dir); err != nil {
		t.Fatal(err)
	}
	if out, err = executeOn(t, m, "inventory", "--classes", file); err != nil {
		t.Fatal(err)
	}
	if contains(t, out, "mps        shared"); strings.Contains(out, "not known") {
		t.Errorf("labels that the agent knows are not known:\n%s", out)
	}
}

func TestBadClasses(t *testing.T) {
	m := simulatortest.NewWithLibrary(t, "t4")
	for content, words := range map[string]string{
		"kind: ConfigMap": `kind: "ConfigMap": want PartitionClass`, "{": "--classes: ",
		"{kind: List, items: [{kind: Pod}]}":                                        `kind: "Pod": want PartitionClass`,
		"{kind: PartitionClass, metadata: {name: a}, spec: {nodeSelector: {}}}":     `PartitionClass a: json: unknown field "nodeSelector"`,
		"{kind: PartitionClass, metadata: {name: a}, spec: {shape: {mps: {a: 1}}}}": `unknown field "a": correct or remove`,
		"{kind: PartitionClass, metadata: {name: a}, spec: {shape: 7}}":             `PartitionClass a: `,
	} {
		if _, err := executeOn(t, m, "inventory", "--classes", classFile(t, content)); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: error %v", content, err)
		}
	}
	if _, err := executeOn(t, m, "inventory", "--classes", "/nowhere"); err == nil || !strings.Contains(err.Error(), "--classes: ") {
		t.Errorf("no file: %v", err)
	}
	// One that is not valid is named, and costs no other its place.
	out, err := executeOn(t, m, "inventory", "--classes", classFile(t, twoClasses+`
- apiVersion: dovetail.dev/v1alpha1
  kind: PartitionClass
  metadata: {name: both}
  spec: {shape: {mps: {}, gpu: {}}}
- apiVersion: dovetail.dev/v1alpha1
  kind: PartitionClass
  metadata: {name: turn}
  spec: {shape: {timeSlice: {clients: 3}}}
- apiVersion: dovetail.dev/v1alpha1
  kind: PartitionClass
  metadata: {name: half}
  spec: {shape: {mps: {memory: 4Gi}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	contains(t, out, "PartitionClass both: spec.shape", "timeslice  turn", "mps        half  4.0 GiB  -  ")
}
