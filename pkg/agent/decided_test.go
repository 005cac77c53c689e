package agent

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/claim"
	"github.com/dovetail-dra/dovetail/pkg/class"
	"github.com/dovetail-dra/dovetail/pkg/classwatch"
	"github.com/dovetail-dra/dovetail/pkg/machine"
	"github.com/dovetail-dra/dovetail/pkg/simulator/simulatortest"
)

// decided is an offering in a bubble of synctest, and what it has last published.
type decided struct {
	*offering
	t *testing.T

	mu        sync.Mutex // guards what follows
	known     *classwatch.Known
	claims    map[string]bool
	held      []machine.Held
	unread    error
	published catalog.Pool
	times     int
	recorded  []int    // classes, each time
	without   []string // classes that were told of
}

// decide runs an offering until the test ends.
func decide(t *testing.T, m machine.Machine, known *classwatch.Known) *decided {
	t.Helper()
	d := &decided{t: t, known: known, claims: map[string]bool{}}
	d.offering = &offering{
		asked: make(chan struct{}, 1), machine: &m,
		known: func() (classwatch.Known, bool) {
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.known == nil {
				return classwatch.Known{}, false
			}
			return *d.known, true
		},
		prepared: func() (claim.Prepared, error) {
			d.mu.Lock()
			defer d.mu.Unlock()
			return claim.Prepared{Names: d.claims, Held: d.held, All: d.unread == nil}, d.unread
		},
		publish: func(p catalog.Pool) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.published = p
			d.times++
		},
		record: func(k classwatch.Known) error {
			d.recorded = append(d.recorded, len(k.Classes))
			return nil
		},
		unoffered: func(u *class.Unoffered) { d.without = append(d.without, u.Class) },
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { d.run(ctx); close(ended) }()
	t.Cleanup(func() { cancel(); <-ended })
	synctest.Wait()
	return d
}

// classes are known from now on, each "name: spec".
func (d *decided) classes(specs ...string) {
	d.t.Helper()
	known := &classwatch.Known{}
	for _, s := range specs {
		name, spec, _ := strings.Cut(s, ": ")
		c := v1alpha1.PartitionClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := yaml.UnmarshalStrict([]byte(spec), &c.Spec); err != nil {
			d.t.Fatal(err)
		}
		known.Classes = append(known.Classes, c)
	}
	d.mu.Lock()
	d.known = known
	d.mu.Unlock()
	d.Ask()
}

// has sets what claims have.
func (d *decided) has(devices ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.claims = map[string]bool{}
	for _, name := range devices {
		d.claims[name] = true
	}
}

// holds sets what claims hold.
func (d *decided) holds(held ...machine.Held) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held = held
}

// remnants that are published.
func (d *decided) remnants() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.published.Remnants
}

// after lets time pass and compares the partitions and sizes that are published then;
// those that are leaving have a minus.
func (d *decided) after(pause time.Duration, want ...string) {
	d.t.Helper()
	<-time.After(pause)
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	got := []string{}
	for _, device := range d.published.Devices {
		name := device.Name
		if !strings.HasPrefix(name, "mig-") && !strings.HasSuffix(name, "-small") {
			if len(device.Taints) > 0 && !strings.HasPrefix(name, "monitor-") {
				d.t.Errorf("%s is leaving", name)
			}
			continue
		}
		if len(device.Taints) > 0 {
			name = "-" + name
		}
		got = append(got, name)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		d.t.Errorf("after %v: %q\nwant %q", pause, got, want)
	}
}

// leaving marks names.
func leaving(names ...string) []string {
	var marked []string
	for _, name := range names {
		marked = append(marked, "-"+name)
	}
	return marked
}

// inBubble tests with one GPU, and the names of its partitions but the halves.
func inBubble(t *testing.T, test func(t *testing.T, m machine.Machine, others []string)) {
	t.Helper()
	m := simulatortest.Describe(t, "dgx-h100") // real time passes here
	m.GPUs, m.NICs = m.GPUs[:1], nil
	var others []string
	for _, d := range m.Devices() {
		if d.Partition != nil && d.Partition.Profile.Name != "3g.40gb" {
			others = append(others, d.Name)
		}
	}
	synctest.Test(t, func(t *testing.T) { test(t, m, others) })
}

func with(names []string, more ...string) []string { return append(slices.Clone(names), more...) }
