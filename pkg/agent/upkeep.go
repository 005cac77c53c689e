package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

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
	// mendInterval is how often what is on this node is looked through anyway:
	// somebody may have removed files.
	mendInterval = 5 * time.Minute
)

// upkeep looks after prepared claims: what a crash or a reload of the driver has
// left is mended, and what belongs to claims that are gone is released. It does so
// at start, when it is asked to, and again while something remains.
type upkeep struct {
	claims   *claim.Manager
	metadata metadataFiles
	damaged  func(uid string, err error)
	asked    chan struct{}
	told     map[string]bool // the problems that people know of
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
	for remains := u.round(ctx); ; {
		again := time.After(mendInterval)
		if remains {
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
			if !remains { // the API server is not asked without a reason
				problems := u.mend(ctx)
				u.tell(ctx, problems)
				remains = len(problems) > 0
				continue
			}
		case <-u.asked:
			select {
			case <-ctx.Done():
				return
			case <-pause:
			}
		}
		remains = u.round(ctx)
	}
}

// mend looks through what is on this node.
func (u *upkeep) mend(ctx context.Context) []claim.Problem {
	problems, err := u.claims.Mend(ctx)
	if err != nil {
		problems = append(problems, claim.Problem{Err: err})
	}
	records, err := u.claims.Records()
	if err != nil {
		problems = append(problems, claim.Problem{Err: err})
	}
	for _, r := range records {
		if r.Err != nil {
			continue
		}
		if err := u.metadata.Restore(r.Entry.Claim); err != nil {
			problems = append(problems, claim.Problem{ClaimUID: r.UID, Err: fmt.Errorf("device metadata: %w", err)})
		}
	}
	return problems
}

// round says whether something remains.
func (u *upkeep) round(ctx context.Context) bool {
	problems := u.mend(ctx)
	reconciled, err := u.claims.Reconcile(ctx)
	problems = append(problems, reconciled.Problems...)
	if err != nil {
		problems = append(problems, claim.Problem{Err: fmt.Errorf("compare claims with the API server: %w", err)})
	}
	for _, c := range reconciled.Released {
		if err := u.metadata.Remove(c); err != nil {
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
	now := map[string]bool{}
	for _, p := range problems {
		key := p.ClaimUID + "\n" + p.Err.Error()
		now[key] = true
		if u.told[key] {
			continue
		}
		klog.FromContext(ctx).Error(p.Err, "Found something to look after", "claimUID", p.ClaimUID)
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
