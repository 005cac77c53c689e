package certificates

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/dovetail-dra/dovetail/pkg/failure"
)

// look is how often certificates are compared with the clock. It may be set to another
// time at any moment, which no timer notices; a look without a change asks nobody.
const look = time.Minute

// retry is how long after a failure it is tried again.
const retry = 5 * time.Second

// Config of a Keeper.
type Config struct {
	Kube kubernetes.Interface
	// Namespace and Secret, which must exist; it may be empty.
	Namespace, Secret string
	// Webhooks is the ValidatingWebhookConfiguration whose webhooks the server answers.
	Webhooks string
	Names    Names
	Clock    clock.WithTicker
}

// Keeper keeps Secret and caBundle as they should be, and has the certificate to serve.
// Every replica has one; they need no leader, since the API server takes only one
// change of the Secret at a time, and all do the same with the same Secret.
type Keeper struct {
	config   Config
	secret   cache.SharedIndexInformer
	webhooks cache.SharedIndexInformer
	changed  chan struct{} // one is enough
	leaf     atomic.Pointer[tls.Certificate]
	made     time.Time // when this replica last changed the Secret; Start's alone
}

// New returns a Keeper that does nothing before Start.
func New(config Config) (*Keeper, error) {
	k := &Keeper{config: config, changed: make(chan struct{}, 1)}
	k.secret, k.webhooks = secretInformer(config), webhooksInformer(config)
	for _, informer := range []cache.SharedIndexInformer{k.secret, k.webhooks} {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { k.wake() }, UpdateFunc: func(any, any) { k.wake() }, DeleteFunc: func(any) { k.wake() },
		})
		if err != nil {
			return nil, err
		}
	}
	return k, nil
}

func (k *Keeper) wake() {
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// NeedLeaderElection says that every replica runs it.
func (k *Keeper) NeedLeaderElection() bool { return false }

// Certificate is for tls.Config.GetCertificate.
func (k *Keeper) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if leaf := k.leaf.Load(); leaf != nil {
		return leaf, nil
	}
	return nil, errors.New("there is no certificate yet")
}

// Ready returns nil once there is a certificate.
func (k *Keeper) Ready() error {
	_, err := k.Certificate(nil)
	return err
}

// Start keeps until the context ends.
func (k *Keeper) Start(ctx context.Context) error {
	go k.secret.RunWithContext(ctx)
	go k.webhooks.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), k.secret.HasSynced, k.webhooks.HasSynced) {
		return nil // the end came first
	}
	ticker := k.config.Clock.NewTicker(look)
	defer ticker.Stop()
	for {
		var again <-chan time.Time
		if err := k.sync(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Certificates are not as they should be", "secret", klog.KRef(k.config.Namespace, k.config.Secret))
			if !errors.Is(err, failure.Absent) { // which a watch tells when it comes
				again = k.config.Clock.After(retry)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-k.changed:
		case <-ticker.C():
		case <-again:
		}
	}
}

// sync compares Secret, clock and configuration once.
func (k *Keeper) sync(ctx context.Context) error {
	secret, err := cached[corev1.Secret](k.secret, k.config.Namespace+"/"+k.config.Secret)
	if err != nil {
		return err
	}
	// Without it nobody calls: somebody may have deleted it to be rid of the webhook. The
	// rest goes on.
	webhooks, nobody := cached[admissionregistration.ValidatingWebhookConfiguration](k.webhooks, k.config.Webhooks)
	if nobody != nil {
		webhooks = &admissionregistration.ValidatingWebhookConfiguration{}
	}
	set, err := k.renewed(ctx, secret, webhooks)
	if set == nil {
		return err
	}
	k.leaf.Store(&set.Leaf)
	if nobody != nil {
		return nobody
	}
	return k.trust(ctx, webhooks, set.Bundle())
}

// renewed is what the Secret has, after it was brought up to date; nil where another
// replica was faster, whose change comes by the watch.
func (k *Keeper) renewed(ctx context.Context, secret *corev1.Secret, webhooks *admissionregistration.ValidatingWebhookConfiguration) (*Set, error) {
	log := klog.FromContext(ctx)
	current, err := Load(secret.Data)
	if err != nil {
		log.Error(err, "The Secret does not make sense and is made anew", "secret", klog.KObj(secret))
	}
	now := k.config.Clock.Now()
	set, why, err := Renew(current, now, func(c *x509.Certificate) bool { return trusted(webhooks, c) }, k.config.Names)
	if err != nil || why == "" {
		return set, err
	}
	// Replicas whose clocks are years apart never agree on what is valid. They take turns,
	// but not as fast as the API server lets them.
	if since := now.Sub(k.made); current != nil && since >= 0 && since < look {
		return current, nil
	}
	changed := secret.DeepCopy()
	if changed.Data, err = set.Data(); err != nil {
		return nil, err
	}
	_, err = k.config.Kube.CoreV1().Secrets(secret.Namespace).Update(ctx, changed, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("update Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	k.made = now
	log.Info("Certificates renewed", "why", why, "until", set.Leaf.Leaf.NotAfter, "authorities", len(set.Authorities))
	return set, nil
}

// trusted says whether each of the webhooks trusts an authority.
func trusted(c *admissionregistration.ValidatingWebhookConfiguration, authority *x509.Certificate) bool {
	for _, w := range c.Webhooks {
		if !Trusts(w.ClientConfig.CABundle, authority) {
			return false
		}
	}
	return true
}

// trust puts the bundle where it is not.
func (k *Keeper) trust(ctx context.Context, c *admissionregistration.ValidatingWebhookConfiguration, bundle []byte) error {
	type clientConfig struct {
		CABundle []byte `json:"caBundle"`
	}
	type webhook struct {
		Name         string       `json:"name"` // which the API server merges by
		ClientConfig clientConfig `json:"clientConfig"`
	}
	var webhooks []webhook
	for _, w := range c.Webhooks {
		if !bytes.Equal(w.ClientConfig.CABundle, bundle) {
			webhooks = append(webhooks, webhook{Name: w.Name, ClientConfig: clientConfig{bundle}})
		}
	}
	if len(webhooks) == 0 {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		// Of two replicas, the one that saw an older Secret loses.
		"metadata": map[string]string{"resourceVersion": c.ResourceVersion}, "webhooks": webhooks,
	})
	if err != nil {
		return err
	}
	_, err = k.config.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Patch(ctx, c.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("patch ValidatingWebhookConfiguration %s: %w", c.Name, err)
	}
	return nil
}
