package e2e

import (
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/dovetail-dra/dovetail/test/harness"
)

// asAgent is a client with a token like the one that the agent on a node has.
func (e *env) asAgent(node string) kubernetes.Interface {
	e.Helper()
	pod, err := e.WaitAgent(e.ctx, node)
	e.must(err)
	return e.asServiceAccount(harness.Namespace, pod.Spec.ServiceAccountName,
		&authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID})
}

func (e *env) asServiceAccount(namespace, name string, bound *authenticationv1.BoundObjectReference) kubernetes.Interface {
	e.Helper()
	token, err := e.Kube.CoreV1().ServiceAccounts(namespace).CreateToken(e.ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: bound},
	}, metav1.CreateOptions{})
	e.must(err)
	config := rest.AnonymousClientConfig(e.Config)
	config.BearerToken = token.Status.Token
	client, err := kubernetes.NewForConfig(config)
	e.must(err)
	return client
}

// TestAgentWritesOwnSlicesOnly: whoever takes a node cannot pretend to be another.
func TestAgentWritesOwnSlicesOnly(t *testing.T) {
	e := start(t, nil)
	slices := e.asAgent(node1).ResourceV1().ResourceSlices()
	of := func(node string) *resourceapi.ResourceSlice {
		all, err := e.WaitSlices(e.ctx, node, "its pool", func([]*resourceapi.ResourceSlice) bool { return true })
		e.must(err)
		return all[0].DeepCopy()
	}
	dry := []string{metav1.DryRunAll}
	own, other := of(node1), of(node2)

	_, err := slices.Update(e.ctx, own, metav1.UpdateOptions{DryRun: dry})
	e.must(err)
	made := func(node *string, driver, pool string) *resourceapi.ResourceSlice {
		s := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{GenerateName: "forged-"}}
		s.Spec = resourceapi.ResourceSliceSpec{
			Driver: driver, NodeName: node, Pool: resourceapi.ResourcePool{Name: pool, ResourceSliceCount: 1},
			Devices: []resourceapi.Device{{Name: "gpu"}},
		}
		if node == nil {
			s.Spec.AllNodes = ptr.To(true)
		}
		return s
	}
	for what, err := range map[string]error{
		"updating another node's slice": func() error {
			_, err := slices.Update(e.ctx, other, metav1.UpdateOptions{DryRun: dry})
			return err
		}(),
		"deleting another node's slice": slices.Delete(e.ctx, other.Name, metav1.DeleteOptions{DryRun: dry}),
		"making a slice for another node": func() error {
			_, err := slices.Create(e.ctx, made(ptr.To(node2), harness.Driver, node1), metav1.CreateOptions{DryRun: dry})
			return err
		}(),
		"making a slice for all nodes": func() error {
			_, err := slices.Create(e.ctx, made(nil, harness.Driver, node1), metav1.CreateOptions{DryRun: dry})
			return err
		}(),
		"making a slice in another node's pool": func() error {
			_, err := slices.Create(e.ctx, made(ptr.To(node1), harness.Driver, node2), metav1.CreateOptions{DryRun: dry})
			return err
		}(),
		"making a slice of another driver": func() error {
			_, err := slices.Create(e.ctx, made(ptr.To(node1), "gpu.example.com", node1), metav1.CreateOptions{DryRun: dry})
			return err
		}(),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: error %v, want that it is forbidden", what, err)
		}
	}
}

// TestAgentPermissions: the agent may do what is listed here, and, beside what every
// service account may, nothing else. The chart says what it needs each for.
func TestAgentPermissions(t *testing.T) {
	e := start(t, nil)
	anybody := e.permissions(e.asServiceAccount(e.namespace, "default", nil))
	got := slices.DeleteFunc(e.permissions(e.asAgent(node1)), func(p string) bool { return slices.Contains(anybody, p) })
	want := []string{
		"dovetail.dev/partitionclasses: list watch",
		"events.k8s.io/events: create patch",
		"nodes: get watch",
		"resource.k8s.io/resourceclaims/driver dovetail.dev: associated-node:patch associated-node:update",
		"resource.k8s.io/resourceclaims/status: patch update",
		"resource.k8s.io/resourceclaims: get",
		"resource.k8s.io/resourceslices: create delete get list patch update watch",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the agent may:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// permissions are what a client may do, as the API server tells it.
func (e *env) permissions(client kubernetes.Interface) []string {
	e.Helper()
	review, err := client.AuthorizationV1().SelfSubjectRulesReviews().Create(e.ctx, &authorizationv1.SelfSubjectRulesReview{
		Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: "default"},
	}, metav1.CreateOptions{})
	e.must(err)
	var all []string
	for _, rule := range review.Status.ResourceRules {
		slices.Sort(rule.Verbs)
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				name := strings.Trim(group+"/"+resource, "/")
				if len(rule.ResourceNames) > 0 {
					name += " " + strings.Join(rule.ResourceNames, ",")
				}
				all = append(all, name+": "+strings.Join(rule.Verbs, " "))
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
