// Package fleettest makes fleets of simulated machines.
package fleettest

import (
	"fmt"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dovetail-dra/dovetail/pkg/admission/fleet"
	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

// Slices are what a node publishes that is such a machine (of demo/machines), with
// shares of these sizes.
func Slices(t testing.TB, node, name string, sizes ...machine.Size) []*resourceapi.ResourceSlice {
	t.Helper()
	described := simulatortest.Describe(t, name)
	described.Sharing.Sizes = sizes
	var published []*resourceapi.ResourceSlice
	for i, s := range catalog.Build(described, catalog.Options{}).Slices() {
		published = append(published, &resourceapi.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", node, i), UID: types.UID(fmt.Sprintf("%s-%d", node, i))},
			Spec:       resourceapi.ResourceSliceSpec{Driver: catalog.DriverName, Devices: s.Devices, SharedCounters: s.Counters},
		})
	}
	return published
}

// New returns the fleet of a cluster with one such machine each.
func New(t testing.TB, names ...string) *fleet.Fleet {
	t.Helper()
	f := fleet.New()
	for _, name := range names {
		for _, s := range Slices(t, name, name, machine.Size{Name: "small", Kind: machine.KindMPS, Memory: 10 << 30, Compute: 25}) {
			f.Set(s)
		}
	}
	return f
}
