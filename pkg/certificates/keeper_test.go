package certificates

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/dovetail-dra/dovetail/pkg/patience/patiencetest"
)

const namespace, name = "dovetail-system", "dovetail-webhook"

// cluster is an API server with what the chart brings.
type cluster struct {
	*testing.T
	*fake.Clientset
	clock *clocktesting.FakeClock

	mu      sync.Mutex // guards updates
	updates int
}

// made is how many times the Secret was changed.
func (c *cluster) made() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.updates
}

func newCluster(t *testing.T, objects ...runtime.Object) *cluster {
	t.Helper()
	c := &cluster{T: t, Clientset: fake.NewClientset(objects...), clock: clocktesting.NewFakeClock(start)}
	// The real API server takes a change only of what it has; the fake one takes any.
	c.PrependReactor("update", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		secret := action.(clienttesting.UpdateAction).GetObject().(*corev1.Secret)
		if want := strconv.Itoa(c.updates); secret.ResourceVersion != want {
			return true, nil, apierrors.NewConflict(corev1.Resource("secrets"), secret.Name, nil)
		}
		c.updates++
		secret.ResourceVersion = strconv.Itoa(c.updates)
		return false, nil, nil
	})
	return c
}

func secret(data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: "0"}, Data: data}
}

func configuration() *admissionregistration.ValidatingWebhookConfiguration {
	c := &admissionregistration.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, w := range []string{"claims.dovetail.dev", "classes.dovetail.dev"} {
		c.Webhooks = append(c.Webhooks, admissionregistration.ValidatingWebhook{Name: w, ClientConfig: admissionregistration.WebhookClientConfig{
			Service: &admissionregistration.ServiceReference{Namespace: namespace, Name: name},
		}})
	}
	return c
}

// replica starts a Keeper, which the test's end stops.
func (c *cluster) replica() *Keeper {
	c.Helper()
	return c.replicaWith(c.clock)
}

func (c *cluster) replicaWith(clock *clocktesting.FakeClock) *Keeper {
	c.Helper()
	k, err := New(Config{Kube: c, Namespace: namespace, Secret: name, Webhooks: name, Names: names, Clock: clock})
	if err != nil {
		c.Fatal(err)
	}
	ctx, stop := context.WithCancel(c.Context())
	ended := make(chan error)
	go func() { ended <- k.Start(ctx) }()
	c.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			c.Error(err)
		}
	})
	return k
}

func (c *cluster) eventually(what string, ok func() bool) {
	c.Helper()
	err := wait.PollUntilContextTimeout(c.Context(), 5*time.Millisecond, patiencetest.Limit, true, func(context.Context) (bool, error) { return ok(), nil })
	if err != nil {
		c.Fatalf("never: %s", what)
	}
}

// stored is what the Secret has.
func (c *cluster) stored() *Set {
	c.Helper()
	s, err := c.CoreV1().Secrets(namespace).Get(c.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}
	set, err := Load(s.Data)
	if err != nil {
		return nil
	}
	return set
}

// agreed says whether all replicas serve what is stored, and all webhooks trust it.
func (c *cluster) agreed(replicas ...*Keeper) bool {
	c.Helper()
	set := c.stored()
	if set == nil {
		return false
	}
	for _, k := range replicas {
		leaf, err := k.Certificate(nil)
		if err != nil || !leaf.Leaf.Equal(set.Leaf.Leaf) {
			return false
		}
	}
	webhooks, err := c.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(c.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}
	for _, w := range webhooks.Webhooks {
		if string(w.ClientConfig.CABundle) != string(set.Bundle()) || w.ClientConfig.Service.Name != name {
			return false
		}
	}
	return len(webhooks.Webhooks) == 2
}

func TestTwoReplicas(t *testing.T) {
	c := newCluster(t, secret(nil), configuration())
	a, b := c.replica(), c.replica()
	c.eventually("both serve what is stored", func() bool { return c.agreed(a, b) })
	if c.made() != 1 {
		t.Errorf("%d certificates were made", c.made())
	}
	first := c.stored()
	c.eventually("they wait", c.clock.HasWaiters)
	c.clock.Step(leafLife - time.Hour)
	c.eventually("a new certificate", func() bool { return !c.stored().Leaf.Leaf.Equal(first.Leaf.Leaf) && c.agreed(a, b) })
	if !c.stored().Authorities[0].Equal(first.Authorities[0]) || c.made() != 2 {
		t.Errorf("%d updates, or another authority", c.made())
	}
	late := c.replica()
	c.eventually("one that comes later serves the same", func() bool { return c.agreed(late) })
}

// Of two replicas of which one's clock begins in 1970, as on a board without a battery,
// each finds that what the other makes is not valid.
func TestClocksYearsApart(t *testing.T) {
	c := newCluster(t, secret(nil), configuration())
	wrong := clocktesting.NewFakeClock(time.Unix(0, 0))
	a := c.replica()
	c.eventually("the first one's", func() bool { return c.agreed(a) })
	b := c.replicaWith(wrong)
	c.eventually("the second one's, which both serve", func() bool { return c.made() == 2 && c.agreed(a, b) })
	for i, clock := range []*clocktesting.FakeClock{c.clock, wrong, c.clock} {
		clock.Step(look)
		c.eventually("the other one's, once", func() bool { return c.made() == 3+i && c.agreed(a, b) })
	}
}

func TestBundleIsPutBack(t *testing.T) {
	c := newCluster(t, secret(nil), configuration())
	k := c.replica()
	c.eventually("trusted", func() bool { return c.agreed(k) })
	if _, err := c.AdmissionregistrationV1().ValidatingWebhookConfigurations().Update(t.Context(), configuration(), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.eventually("trusted again", func() bool { return c.agreed(k) })
	if c.made() != 1 {
		t.Errorf("%d certificates were made", c.made())
	}
}

func TestNonsenseIsMadeAnew(t *testing.T) {
	c := newCluster(t, secret(map[string][]byte{"tls.crt": []byte("x")}), configuration())
	k := c.replica()
	c.eventually("trusted", func() bool { return c.agreed(k) })
}

// Whoever deletes the webhooks to be rid of them must not lose the controller, too.
func TestWithoutWebhooks(t *testing.T) {
	c := newCluster(t, secret(nil))
	k := c.replica()
	c.eventually("ready", func() bool { return k.Ready() == nil })
	if _, err := c.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), configuration(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.eventually("trusted", func() bool { return c.agreed(k) })
}

func TestWithoutSecret(t *testing.T) {
	c := newCluster(t, configuration())
	k := c.replica()
	c.eventually("it waits", c.clock.HasWaiters)
	if k.Ready() == nil {
		t.Error("ready without a Secret")
	}
	if _, err := c.CoreV1().Secrets(namespace).Create(t.Context(), secret(nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.eventually("trusted", func() bool { return c.agreed(k) })
}
