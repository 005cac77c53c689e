package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dovetail-dra/dovetail/pkg/journal"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/plan"
)

// Invariants compares, for each node, hardware, journal, CDI specifications and
// the API, and returns the differences in words. To be called when no claim is on
// its way in or out.
func (c *Cluster) Invariants(ctx context.Context, nodes ...string) ([]string, error) {
	claims, err := c.Kube.ResourceV1().ResourceClaims("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	pods, err := c.Kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var all []string
	for _, node := range nodes {
		snapshot, err := c.Snapshot(ctx, node)
		if err != nil {
			return nil, err
		}
		for _, difference := range compare(node, snapshot, claims.Items, pods.Items) {
			all = append(all, node+": "+difference)
		}
	}
	return all, nil
}

// comparison of one node's state.
type comparison struct {
	*Snapshot
	node string
	// wanted are the claims that Pods on the node hold, by UID; running says
	// whether containers run with them.
	wanted  map[string]*resourceapi.ResourceClaim
	running map[string]bool
	found   []string
}

func compare(node string, s *Snapshot, claims []resourceapi.ResourceClaim, pods []corev1.Pod) []string {
	c := &comparison{Snapshot: s, node: node, wanted: map[string]*resourceapi.ResourceClaim{}, running: map[string]bool{}}
	c.reserved(claims, pods)
	c.journal()
	c.specs()
	c.hardware()
	c.leftovers()
	return c.found
}

func (c *comparison) differ(format string, args ...any) {
	c.found = append(c.found, fmt.Sprintf(format, args...))
}

// reserved finds which claims the API shows in use on the node.
func (c *comparison) reserved(claims []resourceapi.ResourceClaim, pods []corev1.Pod) {
	here := map[string]*corev1.Pod{}
	for i := range pods {
		if pods[i].Spec.NodeName == c.node {
			here[string(pods[i].UID)] = &pods[i]
		}
	}
	for i := range claims {
		claim := &claims[i]
		if claim.Status.Allocation == nil || !slices.ContainsFunc(claim.Status.Allocation.Devices.Results, c.own) {
			continue
		}
		for _, user := range claim.Status.ReservedFor {
			if pod := here[string(user.UID)]; pod != nil {
				c.wanted[string(claim.UID)] = claim
				c.running[string(claim.UID)] = c.running[string(claim.UID)] || pod.Status.Phase == corev1.PodRunning
			}
		}
	}
}

func (c *comparison) own(r resourceapi.DeviceRequestAllocationResult) bool {
	return r.Driver == Driver && r.Pool == c.node
}

// journal = API.
func (c *comparison) journal() {
	recorded := c.Claims()
	for uid, claim := range c.wanted {
		if c.running[uid] && !recorded[uid] {
			c.differ("claim %s/%s is in use by a running Pod, but not in the journal", claim.Namespace, claim.Name)
		}
	}
	for uid := range recorded {
		entry, err := journal.Unmarshal(c.Files[path.Join(ClaimsDir, uid+jsonSuffix)])
		if err != nil {
			c.differ("the journal's record of claim %s cannot be read: %v", uid, err)
			continue
		}
		claim := c.wanted[uid]
		switch {
		case claim == nil:
			c.differ("claim %s (%s) is in the journal, but no Pod on this node has it", entry.Claim, uid)
			continue
		case claim.Namespace != entry.Claim.Namespace || claim.Name != entry.Claim.Name:
			c.differ("claim %s/%s is in the journal as %s", claim.Namespace, claim.Name, entry.Claim)
		case !entry.Complete():
			c.differ("the journal's record of claim %s is not complete", entry.Claim)
		}
		if got, want := c.devicesOf(entry), c.allocated(claim); !slices.Equal(got, want) {
			c.differ("claim %s holds %v according to the journal, %v according to the API", entry.Claim, got, want)
		}
	}
}

// devicesOf are the devices among what a claim has, alone or with others, a pair by its
// own name; the rest are memory units.
func (c *comparison) devicesOf(e *journal.Entry) []string {
	all := slices.DeleteFunc(slices.Clone(e.Holds), func(name string) bool { return strings.Contains(name, "/") })
	for _, as := range e.Joins {
		if as != asLanes && as != asVFs {
			all = append(all, as)
		}
	}
	for _, pair := range pairsOf(e) {
		// It has all of its GPU, and its NIC, a virtual function, or a lane.
		gpu := c.gpuName(pair.GPU)
		part := slices.Contains(all, pair.NIC.Name)
		if !slices.Contains(all, gpu) || !part && e.Joins[pair.NIC.Name] != asLanes {
			continue // it will be missed
		}
		all = slices.DeleteFunc(all, func(name string) bool { return name == gpu || part && name == pair.NIC.Name })
		all = append(all, pair.Name)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// What a NIC is held as by claims that have a part of it (pkg/plan).
const (
	asLanes = "lanes"
	asVFs   = "vfs"
)

// pairsOf are the pairs that a record has.
func pairsOf(e *journal.Entry) []plan.Device {
	var detail struct{ Devices []plan.Device }
	if err := json.Unmarshal(e.Detail, &detail); err != nil {
		return nil // what is not told of cannot be compared with the API's
	}
	return slices.DeleteFunc(detail.Devices, func(d plan.Device) bool { return d.Kind != machine.KindPair || d.NIC == nil || d.AdminAccess })
}

// gpuName is what a GPU is called as a device.
func (c *comparison) gpuName(uuid string) string {
	if c.Machine == nil {
		return ""
	}
	gpu, err := c.Machine.Find(uuid)
	if err != nil {
		return ""
	}
	return (&machine.GPU{Address: gpu.Spec.Address}).Name()
}

// allocated names the devices that a claim has, be it a share of them.
func (c *comparison) allocated(claim *resourceapi.ResourceClaim) []string {
	var names []string
	for _, r := range claim.Status.Allocation.Devices.Results {
		if c.own(r) && (r.AdminAccess == nil || !*r.AdminAccess) {
			names = append(names, r.Device)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// specs: CDI = journal.
func (c *comparison) specs() {
	recorded, specs := c.Claims(), c.Specs()
	for _, uid := range slices.Sorted(maps.Keys(recorded)) {
		if !specs[uid] {
			c.differ("claim %s is in the journal, but has no CDI specification", uid)
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(specs)) {
		if !recorded[uid] {
			c.differ("claim %s has a CDI specification, but is not in the journal", uid)
		}
		if content := c.Files[cdiClaim+uid+jsonSuffix]; !json.Valid(content) {
			c.differ("the CDI specification of claim %s is no JSON", uid)
		}
	}
}

// hardware = journal.
func (c *comparison) hardware() {
	if c.Machine == nil {
		return
	}
	steps := c.steps()
	for i := range c.Machine.GPUs {
		gpu := c.Machine.GPU(i)
		want := machine.ComputeModeDefault
		for _, s := range steps {
			if s.Kind == plan.SetComputeMode && s.GPU == gpu.Spec.UUID {
				want = s.ComputeMode
			}
		}
		if gpu.ComputeMode != want {
			c.differ("GPU %s (%s) is in compute mode %s, want %s", gpu.Spec.Address, gpu.Spec.UUID, gpu.ComputeMode, want)
		}
		c.timeSlice(gpu.Spec.UUID, gpu.TimeSliceOf(), steps)
		c.partitions(gpu, steps)
	}
	c.daemons(steps)
	c.network(steps)
}

// leftovers of work that is over, or was cut short.
func (c *comparison) leftovers() {
	names := map[string]bool{}
	for _, claim := range c.wanted {
		names[claim.Namespace+"_"+claim.Name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(c.Files)) {
		base := path.Base(name)
		switch {
		case strings.HasPrefix(base, ".tmp-"):
			c.differ("temporary file %s", name)
		case strings.HasPrefix(name, metaDir+"/"):
			if claim, _, _ := strings.Cut(strings.TrimPrefix(name, metaDir+"/"), "/"); !names[claim] {
				c.differ("metadata of a claim that no Pod has: %s", name)
			}
		case strings.HasPrefix(name, topologyDir+"/"):
			if uid := strings.TrimSuffix(base, path.Ext(base)); c.wanted[uid] == nil {
				c.differ("NCCL's file of a claim that no Pod has: %s", name)
			}
		case strings.HasPrefix(name, cdiMeta):
			if uid, _, _ := strings.Cut(strings.TrimPrefix(name, cdiMeta), "_"); c.wanted[uid] == nil {
				c.differ("CDI specification of the metadata of a claim that no Pod has: %s", name)
			}
		}
	}
}
