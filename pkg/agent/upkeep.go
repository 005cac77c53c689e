package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/dovetail-dra/dovetail/pkg/catalog"
	"github.com/dovetail-dra/dovetail/pkg/claim"
	"github.com/dovetail-dra/dovetail/pkg/failure"
	"github.com/dovetail-dra/dovetail/pkg/journal"
)

const (
	// kubeletsTime is how long the kubelet has to release a claim that is gone
	// before the agent asks whether it still knows it: it goes through its claims
	// once a minute.
	kubeletsTime = 3 * time.Minute
	// upkeepPause is the least between two rounds, and upkeepMost the most while
	// something remains to be done.
	upkeepPause = 5 * time.Second
	upkeepMost  = 2 * time.Minute
)

// upkeep looks after prepared claims: what a crash or a reload of the driver has
// left is mended, and what belongs to claims that are gone is released. It does so
// at start, when it is asked to, and again while something remains.
type upkeep struct {
	claims  *claim.Manager
	damaged func(uid string, err error)
	cleaned func(journal.Claim) error
	asked   chan struct{}
	told    map[string]string // by claim's UID: the problem that people know of
}

// Ask has a round made soon. It does not wait.
func (u *upkeep) Ask() {
	select {
	case u.asked <- struct{}{}:
	default: // one is due already
	}
}

func (u *upkeep) run(ctx context.Context) {
	wait := upkeepPause
	for {
		var again <-chan time.Time
		if u.round(ctx) {
			again = time.After(wait)
			wait = min(2*wait, upkeepMost)
		} else {
			wait = upkeepPause
		}
		pause := time.After(upkeepPause)
		select {
		case <-ctx.Done():
			return
		case <-again:
		case <-u.asked:
			select {
			case <-ctx.Done():
				return
			case <-pause:
			}
		}
	}
}

// round says whether something remains.
func (u *upkeep) round(ctx context.Context) bool {
	problems, err := u.claims.Mend(ctx)
	if err != nil {
		problems = append(problems, claim.Problem{Err: err})
	}
	reconciled, err := u.claims.Reconcile(ctx)
	problems = append(problems, reconciled.Problems...)
	if err != nil {
		problems = append(problems, claim.Problem{Err: fmt.Errorf("compare claims with the API server: %w", err)})
	}
	for _, c := range reconciled.Released {
		if err := u.cleaned(c); err != nil {
			problems = append(problems, claim.Problem{ClaimUID: c.UID, Err: err})
		}
	}
	if ctx.Err() != nil {
		return false
	}
	u.tell(ctx, problems)
	return len(problems) > 0 || reconciled.Waiting > 0
}

// tell reports each problem once.
func (u *upkeep) tell(ctx context.Context, problems []claim.Problem) {
	now := map[string]string{}
	for _, p := range problems {
		now[p.ClaimUID] = p.Err.Error()
		if u.told[p.ClaimUID] == p.Err.Error() {
			continue
		}
		klog.FromContext(ctx).Error(p.Err, "A prepared claim needs care; trying again", "claimUID", p.ClaimUID)
		if p.ClaimUID != "" {
			u.damaged(p.ClaimUID, p.Err)
		}
	}
	u.told = now
}

// claimProblem tells people of a problem with a claim's record.
func (a *Agent) claimProblem(uid string, err error) {
	if errors.Is(err, failure.Corrupt) {
		a.config.Metrics.JournalDamaged()
	}
	a.events.claimProblem(uid, err)
}

// liveClaim reads a claim from the API server, past any cache.
func (a *Agent) liveClaim(ctx context.Context, c journal.Claim) (*resourceapi.ResourceClaim, error) {
	live, err := a.config.Kube.ResourceV1().ResourceClaims(c.Namespace).Get(ctx, c.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && string(live.UID) != c.UID {
		return nil, failure.New(failure.Absent, "claim %s with UID %s does not exist", c, c.UID)
	}
	return live, err
}

// removeMetadata removes the files that the kubelet plugin helper has written for a
// claim that is released without the kubelet's asking. Their directory has the
// claim's name, and may be its successor's by now.
func (a *Agent) removeMetadata(c journal.Claim) error {
	specs, err := filepath.Glob(filepath.Join(a.config.CDIDir, catalog.DriverName+"_metadata_"+c.UID+"_*.json"))
	errs := []error{err}
	for _, path := range specs {
		errs = append(errs, os.Remove(path))
	}
	records, err := a.claims.Records()
	errs = append(errs, err)
	for _, r := range records {
		if r.Entry == nil || r.Entry.Claim.Namespace == c.Namespace && r.Entry.Claim.Name == c.Name {
			return errors.Join(errs...)
		}
	}
	return errors.Join(append(errs, os.RemoveAll(filepath.Join(a.config.PluginDir, "dra-device-metadata", c.Namespace+"_"+c.Name)))...)
}
