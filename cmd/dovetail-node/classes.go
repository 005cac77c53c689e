package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/dovetail-dra/dovetail/api/v1alpha1"
	"github.com/dovetail-dra/dovetail/pkg/class"
	"github.com/dovetail-dra/dovetail/pkg/classwatch"
)

// classes says which PartitionClasses count, as flags.
type classes struct{ file string }

func (c *classes) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.file, "classes", "", "file of PartitionClasses to go by, as kubectl get partitionclasses -o yaml writes them (default: those of which the agent knew last, from --plugin-dir)")
}

// choose fills in what is published of what was seen. A class that is not valid, or of
// which something cannot be published, costs no more than that; unfit says why.
func (c *classes) choose(what *seen, pluginDir string) (unfit, err error) {
	known, err := classwatch.Read(pluginDir)
	if errors.Is(err, fs.ErrPermission) {
		unfit, err = fmt.Errorf("which classes the agent goes by, and its node's labels, are not known: run it as root: %w", err), nil
	}
	if err != nil {
		return nil, err
	}
	if c.file != "" {
		if known.Classes, err = readClasses(c.file); err != nil {
			return nil, fmt.Errorf("--classes: %w", err)
		}
	}
	var elsewhere []string
	for i := range known.Classes {
		class := &known.Classes[i]
		what.classes = append(what.classes, class.Name)
		if known.NodeLabels == nil && class.Spec.Hardware.NodeSelector != nil {
			elsewhere = append(elsewhere, class.Name)
		}
	}
	if unfit == nil && len(elsewhere) > 0 {
		unfit = fmt.Errorf("the node's labels are not known where no agent has run: PartitionClasses with a nodeSelector (%s) count as other nodes': leave it out of the file to have them here", strings.Join(elsewhere, ", "))
	}
	wanted, invalid := class.WantedOn(known.Classes, known.NodeLabels, what.published.GPUs)
	offer, conflicts := wanted.Offer(&what.published)
	offer.Keep(what.claimed.Names)
	what.offer, what.published = offer, offer.Machine
	return errors.Join(unfit, invalid, conflicts), nil
}

// readClasses from YAML or JSON: documents of one class each, or lists of classes.
// Unknown fields are errors, as kubectl has them.
func readClasses(path string) ([]v1alpha1.PartitionClass, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	found := []v1alpha1.PartitionClass{}
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		var document json.RawMessage
		switch err := documents.Decode(&document); {
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		classes, err := classesOf(document)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		found = append(found, classes...)
	}
}

// classesOf a document: one class, or the items of a list.
func classesOf(document json.RawMessage) ([]v1alpha1.PartitionClass, error) {
	var outer struct {
		Kind     string            `json:"kind"`
		Metadata metav1.ObjectMeta `json:"metadata"`
		Items    []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(document, &outer); err != nil {
		return nil, err
	}
	switch {
	case outer.Items != nil:
		var found []v1alpha1.PartitionClass
		for _, item := range outer.Items {
			classes, err := classesOf(item)
			if err != nil {
				return nil, err
			}
			found = append(found, classes...)
		}
		return found, nil
	case outer.Kind != v1alpha1.PartitionClassKind:
		return nil, fmt.Errorf("kind: %q: want PartitionClass, or a list of them", outer.Kind)
	}
	var class v1alpha1.PartitionClass
	strict := json.NewDecoder(bytes.NewReader(document))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&class); err != nil {
		return nil, fmt.Errorf("PartitionClass %s: %w: correct or remove the field: see docs/partition-classes.md", outer.Metadata.Name, err)
	}
	return []v1alpha1.PartitionClass{class}, nil
}
