package harness

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/classwatch"
)

// Classes are the cluster's PartitionClasses.
func (c *Cluster) Classes() Set { return Set{Client: c.classes, Resource: classwatch.Resource} }

// CreateClass creates a PartitionClass.
func (c *Cluster) CreateClass(ctx context.Context, class *v1alpha1.PartitionClass) error {
	return c.classes.Post().Resource(classwatch.Resource).Body(class).Do(ctx).Error()
}

// PatchClass changes what a merge patch has.
func (c *Cluster) PatchClass(ctx context.Context, name, patch string) error {
	return c.classes.Patch(types.MergePatchType).Resource(classwatch.Resource).Name(name).Body([]byte(patch)).Do(ctx).Error()
}

// DeleteClass deletes a PartitionClass, and does not wait.
func (c *Cluster) DeleteClass(ctx context.Context, name string) error {
	return c.classes.Delete().Resource(classwatch.Resource).Name(name).Body(&metav1.DeleteOptions{}).Do(ctx).Error()
}

// DeleteClasses deletes all PartitionClasses, and waits until they are gone.
func (c *Cluster) DeleteClasses(ctx context.Context) error {
	err := c.classes.Delete().Resource(classwatch.Resource).Body(&metav1.DeleteOptions{}).Do(ctx).Error()
	if err != nil {
		return err
	}
	left, err := Wait(ctx, c.Classes(), "all PartitionClasses to go", func(all []*v1alpha1.PartitionClass) (bool, error) { return len(all) == 0, nil })
	for _, class := range left {
		err = fmt.Errorf("%w\n  there is: %s %+v", err, class.Name, class.Status)
	}
	return err
}

// WaitClass waits until a PartitionClass is as it should be; done gets nil where it is
// not there.
func (c *Cluster) WaitClass(ctx context.Context, name, what string, done func(*v1alpha1.PartitionClass) bool) (*v1alpha1.PartitionClass, error) {
	var last *v1alpha1.PartitionClass
	class, err := WaitOne(ctx, c.Classes(), name, fmt.Sprintf("PartitionClass %s: %s", name, what), func(p *v1alpha1.PartitionClass) (bool, error) {
		last = p
		return done(p), nil
	})
	if err != nil && last != nil {
		err = fmt.Errorf("%w; it is %+v", err, last.Status)
	}
	return class, err
}
