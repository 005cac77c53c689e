package v1alpha1

import (
	"reflect"
	"testing"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

func nodeNetwork(rules string) string {
	return "apiVersion: dovetail.dev/v1alpha1\nkind: NodeNetwork\nrules: " + rules + "\n"
}

func TestDecodeNodeNetwork(t *testing.T) {
	for name, test := range map[string]struct {
		content string
		wantErr []string // parts of the message; none means no error
	}{
		"everything": {nodeNetwork(`
- nodes: ["gpu-*", "node-[1-3]"]
  pairs: [{gpu: "0000:1b:00.0", nic: "0000:1a:00.0"}, {gpu: "00000000:1B:00.0", nic: "0000:1c:00.0"}]
  rails: ["0000:1c:00.0", "0000:1a:00.0"]
  virtualFunctions: [{nic: "10000:1a:00.1", count: 16}]
  lossless: {pfcPriorities: [3], trust: dscp, dscp: {26: 3, 48: 6}}
- rails: ["0000:1a:00.0"]`), nil},
		"a rule that says nothing": {nodeNetwork(`[{nodes: ["*"]}]`), nil},
		"JSON":                     {`{"apiVersion":"dovetail.dev/v1alpha1","kind":"NodeNetwork","rules":[{"lossless":{"trust":"pcp"}}]}`, nil},
		"empty":                    {``, []string{`kind: none`, "want NodeNetwork in dovetail.dev/v1alpha1"}},
		"no YAML":                  {`{`, []string{"docs/nics.md"}},
		"a marker before it":       {"---\n" + nodeNetwork(`[{}]`) + "---\n", nil},
		"two documents":            {nodeNetwork(`[{}]`) + "---\n" + nodeNetwork(`[{}]`), []string{"2 documents", "want one"}},
		"another kind":             {"apiVersion: dovetail.dev/v1alpha1\nkind: NICConfig", []string{`"NICConfig"`, "want NodeNetwork"}},
		"another version":          {"apiVersion: dovetail.dev/v1\nkind: NodeNetwork", []string{`"dovetail.dev/v1"`}},
		"no rules":                 {nodeNetwork("[]"), []string{"rules: Required"}},
		"unknown field":            {nodeNetwork(`[{rail: []}]`), []string{`unknown field "rules[0].rail"`, "docs/nics.md"}},
		"twice":                    {nodeNetwork(`[{rails: [], rails: []}]`), []string{`"rails" already set`}},
		"wrong type":               {nodeNetwork(`[{virtualFunctions: [{nic: "0000:1a:00.0", count: many}]}]`), []string{"virtualFunctions.count", "a string is not what belongs here"}},
		"bad pattern":              {nodeNetwork(`[{nodes: ["gpu-["]}]`), []string{"rules[0].nodes[0]", `"gpu-["`, "gpu-*"}},
		"no name":                  {nodeNetwork(`[{nodes: [""]}]`), []string{"rules[0].nodes[0]"}},
		"bad GPU":                  {nodeNetwork(`[{pairs: [{gpu: "1b:00.0", nic: "0000:1a:00.0"}]}]`), []string{"rules[0].pairs[0].gpu", `"1b:00.0"`, "0000:1b:00.0"}},
		"bad NIC":                  {nodeNetwork(`[{pairs: [{gpu: "0000:1b:00.0", nic: "mlx5_0"}]}]`), []string{"rules[0].pairs[0].nic", `"mlx5_0"`}},
		"bad device":               {nodeNetwork(`[{rails: ["0000:1b:20.0"]}]`), []string{"rules[0].rails[0]"}},
		"odd domain":               {nodeNetwork(`[{rails: ["00001:1b:00.0"]}]`), []string{"rules[0].rails[0]"}},
		"a pair with itself":       {nodeNetwork(`[{pairs: [{gpu: "0000:1b:00.0", nic: "0000:1b:00.0"}]}]`), []string{"pairs[0].nic", "address of the GPU"}},
		"a pair twice": {nodeNetwork(`[{pairs: [{gpu: "0000:1b:00.0", nic: "0000:1a:00.0"}, {gpu: "00000000:1B:00.0", nic: "0000:1A:00.0"}]}]`),
			[]string{"rules[0].pairs[1]: Duplicate"}},
		"a rail twice":       {nodeNetwork(`[{rails: ["0000:1a:00.0", "0000:1A:00.0"]}]`), []string{"rules[0].rails[1]: Duplicate", "0000:1A:00.0"}},
		"VFs twice":          {nodeNetwork(`[{virtualFunctions: [{nic: "0000:1a:00.0", count: 1}, {nic: "0000:1a:00.0", count: 2}]}]`), []string{"virtualFunctions[1].nic: Duplicate"}},
		"no VFs":             {nodeNetwork(`[{virtualFunctions: [{nic: "0000:1a:00.0"}]}]`), []string{"virtualFunctions[0].count", "want 1 at least"}},
		"lossless, but how":  {nodeNetwork(`[{lossless: {}}]`), []string{"rules[0].lossless: Required", "pfcPriorities"}},
		"priority too large": {nodeNetwork(`[{lossless: {pfcPriorities: [3, 8]}}]`), []string{"rules[0].lossless.pfcPriorities[1]", "8", "the nearest is 7"}},
		"priority twice":     {nodeNetwork(`[{lossless: {pfcPriorities: [3, 3]}}]`), []string{"pfcPriorities[1]: Duplicate"}},
		"trust nobody":       {nodeNetwork(`[{lossless: {trust: none}}]`), []string{"lossless.trust", `"none"`, `"dscp"`, `"pcp"`}},
		"code points of pcp": {nodeNetwork(`[{lossless: {trust: pcp, dscp: {26: 3}}}]`), []string{"lossless.dscp", "trust is pcp"}},
		"code point":         {nodeNetwork(`[{lossless: {dscp: {64: 3}}}]`), []string{"lossless.dscp[64]", "0 to 63"}},
		"code point as text": {nodeNetwork(`[{lossless: {dscp: {AF31: 3}}}]`), []string{"lossless.dscp[AF31]", "0 to 63"}},
		"code point's value": {nodeNetwork(`[{lossless: {dscp: {26: 9}}}]`), []string{"lossless.dscp[26]", "the nearest is 7"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := DecodeNodeNetwork([]byte(test.content))
			says(t, err, test.wantErr)
		})
	}
}

// FuzzDecodeNodeNetwork: what is accepted is the same when it is written and read again.
func FuzzDecodeNodeNetwork(f *testing.F) {
	full := NodeNetwork{Rules: []NodeNetworkRule{{
		Nodes: []string{"gpu-*"}, Pairs: []NodePair{{"0000:1b:00.0", "0000:1a:00.0"}}, Rails: []string{"0000:1a:00.0"},
		VirtualFunctions: []NodeVirtualFunctions{{"0000:1a:00.0", 4}},
		Lossless:         &NodeLossless{PFCPriorities: []int32{3}, Trust: ptr.To(NodeTrustDSCP), DSCP: map[string]int32{"26": 3}},
	}}}
	full.APIVersion, full.Kind = GroupVersion.String(), NodeNetworkKind
	seed, err := yaml.Marshal(full)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, content []byte) {
		network, err := DecodeNodeNetwork(content)
		if err != nil {
			return
		}
		written, err := yaml.Marshal(network)
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeNodeNetwork(written)
		if err != nil {
			t.Fatalf("%v in\n%s", err, written)
		}
		rewritten, err := yaml.Marshal(again)
		if err != nil || !reflect.DeepEqual(written, rewritten) {
			t.Errorf("%s, %v, then\n%s", written, err, rewritten)
		}
	})
}
