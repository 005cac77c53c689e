package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/pflag"
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
	for i := range known.Classes {
		what.classes = append(what.classes, known.Classes[i].Name)
	}
	wanted, invalid := class.WantedOn(known.Classes, known.NodeLabels, what.published.GPUs)
	offer, conflicts := wanted.Offer(&what.published)
	offer.Keep(what.claimed)
	what.offer, what.published = offer, offer.Machine
	return errors.Join(unfit, invalid, conflicts), nil
}

// readClasses from YAML or JSON: documents of one class each, or lists of classes.
func readClasses(path string) ([]v1alpha1.PartitionClass, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	found := []v1alpha1.PartitionClass{}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		var document struct {
			v1alpha1.PartitionClass `json:",inline"`
			Items                   []v1alpha1.PartitionClass `json:"items"`
		}
		switch err := decoder.Decode(&document); {
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", path, err)
		case document.Items != nil:
			found = append(found, document.Items...)
		case document.Kind == v1alpha1.PartitionClassKind:
			found = append(found, document.PartitionClass)
		default:
			return nil, fmt.Errorf("%s: kind: %q: want PartitionClass, or a list of them", path, document.Kind)
		}
	}
}
