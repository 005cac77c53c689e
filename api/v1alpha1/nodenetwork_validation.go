package v1alpha1

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate says what is wrong: field, value, and what would be right.
func (n *NodeNetwork) Validate() field.ErrorList {
	rules := field.NewPath("rules")
	if len(n.Rules) == 0 {
		return field.ErrorList{field.Required(rules, "want one at least: {nodes: [\"gpu-*\"], …}")}
	}
	var errs field.ErrorList
	for i := range n.Rules {
		errs = append(errs, n.Rules[i].validate(rules.Index(i))...)
	}
	return errs
}

func (r *NodeNetworkRule) validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, pattern := range r.Nodes {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			errs = append(errs, field.Invalid(at.Child("nodes").Index(i), pattern, "want a node's name, or a pattern of names: gpu-*"))
		}
	}
	errs = append(errs, r.validatePairs(at.Child("pairs"))...)
	seen := map[string]bool{}
	for i, rail := range r.Rails {
		errs = append(errs, unused(at.Child("rails").Index(i), rail, seen)...)
	}
	seen = map[string]bool{}
	for i, vfs := range r.VirtualFunctions {
		at := at.Child("virtualFunctions").Index(i)
		errs = append(errs, unused(at.Child("nic"), vfs.NIC, seen)...)
		if vfs.Count < 1 {
			errs = append(errs, field.Invalid(at.Child("count"), vfs.Count, "want 1 at least; to have none, leave the NIC out"))
		}
	}
	if r.Lossless != nil {
		errs = append(errs, r.Lossless.validate(at.Child("lossless"))...)
	}
	return errs
}

func (r *NodeNetworkRule) validatePairs(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[NodePair]bool{}
	for i, pair := range r.Pairs {
		gpu, nic := at.Index(i).Child("gpu"), at.Index(i).Child("nic")
		this := NodePair{normal(pair.GPU), normal(pair.NIC)}
		errs = append(errs, address(gpu, pair.GPU)...)
		errs = append(errs, address(nic, pair.NIC)...)
		if this.GPU != "" && this.GPU == this.NIC {
			errs = append(errs, field.Invalid(nic, pair.NIC, "it is the address of the GPU: want the NIC's"))
		}
		if seen[this] {
			errs = append(errs, field.Duplicate(at.Index(i), pair.GPU+" and "+pair.NIC))
		}
		seen[this] = true
	}
	return errs
}

func (l *NodeLossless) validate(at *field.Path) field.ErrorList {
	errs := oneOf(at.Child("trust"), l.Trust, NodeTrustDSCP, NodeTrustPCP)
	if len(l.PFCPriorities) == 0 && l.Trust == nil && len(l.DSCP) == 0 {
		errs = append(errs, field.Required(at, "it says nothing: say pfcPriorities: [3], trust or dscp, or leave it out"))
	}
	seen := map[int32]bool{}
	for i, priority := range l.PFCPriorities {
		at := at.Child("pfcPriorities").Index(i)
		errs = append(errs, between(at, &priority, 0, 7, "")...)
		if seen[priority] {
			errs = append(errs, field.Duplicate(at, priority))
		}
		seen[priority] = true
	}
	if len(l.DSCP) > 0 && l.Trust != nil && *l.Trust == NodeTrustPCP {
		errs = append(errs, field.Forbidden(at.Child("dscp"), "trust is pcp, which takes no notice of code points: remove one of both"))
	}
	for _, text := range sortedKeys(l.DSCP) {
		at, priority := at.Child("dscp").Key(text), l.DSCP[text]
		if n, err := strconv.Atoi(text); err != nil || n < 0 || n > 63 || strconv.Itoa(n) != text {
			errs = append(errs, field.Invalid(at, text, "want a code point, 0 to 63"))
		}
		errs = append(errs, between(at, &priority, 0, 7, "")...)
	}
	return errs
}

func sortedKeys(m map[string]int32) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

var pciAddress = regexp.MustCompile(`^([0-9a-f]{4,8}):[0-9a-f]{2}:[01][0-9a-f]\.[0-7]$`)

func address(at *field.Path, value string) field.ErrorList {
	if normal(value) == "" {
		return field.ErrorList{field.Invalid(at, value, "want a PCI address: 0000:1b:00.0")}
	}
	return nil
}

// unused wants an address that was not seen.
func unused(at *field.Path, value string, seen map[string]bool) field.ErrorList {
	errs := address(at, value)
	if key := normal(value); key != "" {
		if seen[key] {
			errs = append(errs, field.Duplicate(at, value))
		}
		seen[key] = true
	}
	return errs
}

// normal is the address as sysfs has it, empty where it is none.
func normal(text string) string {
	lower := strings.ToLower(text)
	match := pciAddress.FindStringSubmatch(lower)
	if match == nil {
		return ""
	}
	domain, err := strconv.ParseUint(match[1], 16, 32)
	canonical := fmt.Sprintf("%04x", domain)
	if err != nil || match[1] != canonical && match[1] != fmt.Sprintf("%08x", domain) {
		return ""
	}
	return canonical + lower[len(match[1]):]
}
