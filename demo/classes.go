package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/test/harness"
)

// offer makes the PartitionClasses among objects, waits until nodes have devices of them,
// and returns their names.
func offer(ctx context.Context, c *harness.Cluster, objects []runtime.Object) ([]string, error) {
	var names []string
	for _, o := range objects {
		class, ok := o.(*v1alpha1.PartitionClass)
		if !ok {
			continue
		}
		names = append(names, class.Name)
		if err := c.CreateClass(ctx, class); err != nil {
			return nil, err
		}
	}
	var lines []string
	for _, name := range names {
		class, err := c.WaitClass(ctx, name, "have devices", func(p *v1alpha1.PartitionClass) bool {
			return p != nil && p.Status.DeviceClass != "" && p.Status.Free > 0
		})
		if err != nil {
			return nil, err
		}
		lines = append(lines, "PartitionClass "+stock(class, nil))
	}
	paragraph("offered", lines...)
	return names, nil
}

// tell says how much of the classes is taken, once they count all that Pods hold; in a
// scenario with classes that is theirs.
func tell(ctx context.Context, c *harness.Cluster, classes []string, held []holding) error {
	if len(classes) == 0 {
		return nil
	}
	want := 0
	for _, h := range held {
		want += len(h.pieces)
	}
	all, err := harness.Wait(ctx, c.Classes(), "the PartitionClasses to count what Pods hold", func(all []*v1alpha1.PartitionClass) (bool, error) {
		allocated := 0
		for _, class := range all {
			allocated += int(class.Status.Allocated)
		}
		return allocated == want, nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b *v1alpha1.PartitionClass) int {
		return cmp.Compare(slices.Index(classes, a.Name), slices.Index(classes, b.Name))
	})
	lines := make([]string, len(all))
	for i, class := range all {
		lines[i] = stock(class, held)
	}
	paragraph("taken", lines...)
	return nil
}

// stock of a class by its name, as kubectl shows it, and of what kinds that is which Pods hold.
func stock(class *v1alpha1.PartitionClass, held []holding) string {
	var kinds []string
	count := map[string]int{}
	for _, h := range held {
		for _, p := range h.pieces {
			if p.class != class.Status.DeviceClass {
				continue
			}
			kind := p.kind()
			if count[kind]++; count[kind] == 1 {
				kinds = append(kinds, kind)
			}
		}
	}
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%d of %s", count[kind], kind)
	}
	s := class.Status
	allocated := fmt.Sprint(s.Allocated, " allocated")
	if len(kinds) > 0 {
		allocated += " (" + strings.Join(kinds, ", ") + ")"
	}
	return fmt.Sprintf("%s: %d devices, %s, %d free", class.Name, s.Devices, allocated, s.Free)
}
