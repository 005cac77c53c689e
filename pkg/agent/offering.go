package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/claim"
	"github.com/dovetail-dra/dovetail/pkg/class"
	"github.com/dovetail-dra/dovetail/pkg/classwatch"
	"github.com/dovetail-dra/dovetail/pkg/machine"
)

const (
	// gatherDelay lets an administrator's changes come together: each is several
	// writes to the API server, of each node.
	gatherDelay = 300 * time.Millisecond
	// leaveDelay is how long a device stays that no class asks for any more: the
	// scheduler may be just giving it to a claim, which nobody here knows of before
	// its Pod starts.
	leaveDelay = 30 * time.Second
	// keptInterval is how often devices that are leaving are looked through, beside
	// when a claim is released here: another agent may have released it.
	keptInterval = 10 * time.Second
)

// offering decides what of the machine is published: what PartitionClasses ask for, and
// what claims have from before.
type offering struct {
	known    func() (classwatch.Known, bool)
	prepared func() (claim.Prepared, error)
	publish  func(catalog.Pool)
	record   func(classwatch.Known) error
	// unoffered is told of each class of which not all can be published, once.
	unoffered func(*class.Unoffered)
	options   catalog.Options
	asked     chan struct{}

	mu      sync.Mutex // guards what follows
	machine *machine.Machine
	offer   *class.Offer         // that is published; nil as long as nothing is
	asks    map[string]bool      // devices that were asked for when it was last decided
	leaving map[string]time.Time // devices that are not any more, and until when they stay anyway
	kept    bool                 // something is published that is not asked for
	held    []machine.Held       // that claims had when it was last decided
	goesBy  *classwatch.Known    // as it was recorded last
	said    string               // that is wrong with classes
	told    map[string]bool      // to unoffered
}

// watchClasses returns what is known of classes, and what has it known; without a
// source, there are none.
func watchClasses(classes, node cache.ListerWatcher, changed func()) (known func() (classwatch.Known, bool), run func(context.Context)) {
	if classes == nil {
		return func() (classwatch.Known, bool) { return classwatch.Known{Classes: []v1alpha1.PartitionClass{}}, true }, func(context.Context) {}
	}
	w := classwatch.New(classes, node, changed)
	return w.Known, w.Run
}

// Ask has it decided anew soon. It does not wait.
func (o *offering) Ask() {
	select {
	case o.asked <- struct{}{}:
	default: // it is due already
	}
}

// Machine has it decided for a machine that has changed, at once.
func (o *offering) Machine(ctx context.Context, m *machine.Machine) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.machine = m
	o.decide(ctx)
	if o.kept {
		o.Ask() // which has it looked through from now on
	}
}

// Claimed is told of devices that a claim has been given, which is about to be prepared.
// They may be leaving, or gone already.
func (o *offering) Claimed(devices []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.asks == nil {
		return
	}
	for _, name := range devices {
		if !o.asks[name] {
			o.leaving[name] = time.Now().Add(leaveDelay)
			o.Ask()
		}
	}
}

// Prepared is told likewise that a claim was prepared, or not, by what the machine was before:
// the machine may be another one by now, and what is published knows nothing of the claim.
func (o *offering) Prepared(devices []string, before *machine.Machine) {
	o.Claimed(devices)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.machine != before {
		o.Ask()
	}
}

// Released is told that a claim has ended.
func (o *offering) Released() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.kept {
		o.Ask()
	}
}

// Sharing is how GPUs are shared by what is published; false as long as nothing is.
func (o *offering) Sharing() (machine.Sharing, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.offer == nil {
		return machine.Sharing{}, false
	}
	return o.offer.Machine.Sharing, true
}

// Held are the devices that claims had when it was last decided.
func (o *offering) Held() []machine.Held {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.held
}

// Offer that is published; nil as long as nothing is.
func (o *offering) Offer() catalog.Offer {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.offer == nil {
		return nil // of the interface, too
	}
	return o.offer
}

// run decides whenever it is asked to, until ctx ends.
func (o *offering) run(ctx context.Context) {
	for {
		o.mu.Lock()
		o.decide(ctx)
		var again <-chan time.Time
		if o.kept {
			again = time.After(keptInterval)
		}
		first := o.offer == nil
		o.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-again:
			continue
		case <-o.asked:
		}
		if first { // somebody waits, and there is nothing to gather yet
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(gatherDelay):
		}
	}
}

// decide publishes what is to be published now. Before it is known what classes there
// are, nothing is. The caller has the lock.
func (o *offering) decide(ctx context.Context) {
	known, ok := o.known()
	if !ok {
		return
	}
	wanted, errOfClasses := class.WantedOn(known.Classes, known.NodeLabels, o.machine.GPUs)
	offer, errOfOffer := wanted.Offer(o.machine)
	keep, held, errOfClaims := o.keep(offer)
	offer.Keep(keep)
	o.tell(ctx, errors.Join(errOfClasses, errOfOffer, errOfClaims, o.note(known)))
	o.tellUnoffered(errOfOffer)

	options := o.options
	options.Offer, options.Held = offer, held
	o.offer, o.held = offer, held
	pool := catalog.Build(offer.Machine, options)
	o.kept = o.kept || pool.ForClaims
	o.publish(pool)
}

// keep names the devices that stay although no class asks for them: those that claims
// have, and those that somebody asked for a moment ago. Where it is not known what claims
// have, all stay. held is what is known of what claims have.
func (o *offering) keep(offer *class.Offer) (keep map[string]bool, held []machine.Held, err error) {
	asks, now := offer.Names(), time.Now()
	if o.leaving == nil {
		o.leaving = map[string]time.Time{}
	}
	for name := range o.asks {
		if !asks[name] {
			o.leaving[name] = now.Add(leaveDelay)
		}
	}
	o.asks = asks
	maps.DeleteFunc(o.leaving, func(name string, until time.Time) bool { return asks[name] || !until.After(now) })

	prepared, err := o.prepared()
	keep = maps.Clone(prepared.Names)
	if keep == nil {
		keep = map[string]bool{}
	}
	if err != nil || !prepared.All {
		for _, d := range o.machine.Devices() {
			keep[d.Name] = true
		}
	}
	o.kept = len(o.leaving) > 0
	for name := range o.leaving {
		keep[name] = true
	}
	for name := range keep {
		_, there := offer.Machine.Device(name)
		o.kept = o.kept || there && !asks[name]
	}
	return keep, prepared.Held, err
}

// note records what it goes by, where that is not as before.
func (o *offering) note(known classwatch.Known) error {
	if o.goesBy != nil && equality.Semantic.DeepEqual(*o.goesBy, known) {
		return nil
	}
	if err := o.record(known); err != nil {
		return fmt.Errorf("record PartitionClasses for dovetail-node inventory: %w", err)
	}
	o.goesBy = &known
	return nil
}

// tell logs what is wrong with classes, once.
func (o *offering) tell(ctx context.Context, err error) {
	said := ""
	if err != nil {
		said = err.Error()
	}
	if said != o.said && err != nil {
		klog.FromContext(ctx).Error(err, "Not all that PartitionClasses ask for can be published as they ask for it")
	}
	o.said = said
}

// tellUnoffered tells of classes, each once as long as nothing changes about it.
func (o *offering) tellUnoffered(err error) {
	still := map[string]bool{}
	for _, u := range class.UnofferedIn(err) {
		still[u.Error()] = true
		if !o.told[u.Error()] {
			o.unoffered(u)
		}
	}
	o.told = still
}
