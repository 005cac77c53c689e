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

// recoverClaims mends what a crash has left. Problems are for people to know;
// they stop nothing.
func (a *Agent) recoverClaims(ctx context.Context) error {
	problems, err := a.claims.Recover(ctx)
	if err != nil {
		return fmt.Errorf("recover claims: %w", err)
	}
	a.reportProblems(ctx, problems)
	return nil
}

func (a *Agent) reportProblems(ctx context.Context, problems []claim.Problem) {
	for _, p := range problems {
		klog.FromContext(ctx).Error(p.Err, "Found a problem with a claim's record", "claimUID", p.ClaimUID)
		if errors.Is(p.Err, failure.Corrupt) {
			a.config.Metrics.JournalDamaged()
		}
		a.events.damaged(p.ClaimUID, p.Err)
	}
}

// reconcileClaims releases, once after the start, what belongs to claims that went
// while no agent ran; it waits for the API server as long as that takes.
func (a *Agent) reconcileClaims(ctx context.Context) {
	for wait := time.Second; ; wait = min(2*wait, time.Minute) {
		released, problems, err := a.claims.Reconcile(ctx)
		a.reportProblems(ctx, problems)
		for _, c := range released {
			if err := a.removeMetadata(c); err != nil {
				klog.FromContext(ctx).Error(err, "Cannot remove the metadata of a released claim", "claim", c)
			}
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		klog.FromContext(ctx).Info("Cannot compare claims with the API server yet; trying again", "in", wait, "reason", err.Error())
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

func (a *Agent) liveClaim(ctx context.Context, c journal.Claim) (*resourceapi.ResourceClaim, error) {
	live, err := a.config.Kube.ResourceV1().ResourceClaims(c.Namespace).Get(ctx, c.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && string(live.UID) != c.UID {
		return nil, failure.New(failure.Absent, "claim %s with UID %s does not exist", c, c.UID)
	}
	return live, err
}

// removeMetadata removes the files that the kubelet plugin helper has written for a
// claim that is released without the kubelet's asking.
func (a *Agent) removeMetadata(c journal.Claim) error {
	errs := []error{os.RemoveAll(filepath.Join(a.config.PluginDir, "dra-device-metadata", c.Namespace+"_"+c.Name))}
	specs, err := filepath.Glob(filepath.Join(a.config.CDIDir, catalog.DriverName+"_metadata_"+c.UID+"_*.json"))
	errs = append(errs, err)
	for _, path := range specs {
		errs = append(errs, os.Remove(path))
	}
	return errors.Join(errs...)
}
