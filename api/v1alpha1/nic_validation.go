package v1alpha1

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// Bounds of what Linux takes (if.h, IFNAMSIZ; if_ether.h, ETH_MIN_MTU and ETH_MAX_MTU;
// ipv6.h, IPV6_MIN_MTU, without which an interface has no IPv6).
const (
	longestName = 15
	leastMTU    = 68
	mostMTU     = 65535
	ipv6MTU     = 1280
)

var interfaceName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

func (s *NICSettings) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.InterfaceName != nil {
		errs = append(errs, validateName(path.Child("interfaceName"), *s.InterfaceName)...)
	}
	errs = append(errs, between(path.Child("mtu"), s.MTU, leastMTU, mostMTU, "bytes")...)
	errs = append(errs, between(path.Child("trafficClass"), s.TrafficClass, 0, 255, "")...)
	errs = append(errs, between(path.Child("dscp"), s.DSCP, 0, 63, "")...)
	if s.TrafficClass != nil && s.DSCP != nil {
		errs = append(errs, field.Forbidden(path.Child("dscp"),
			fmt.Sprintf("trafficClass: %d says it already: remove one (a DSCP is a traffic class divided by four)", *s.TrafficClass)))
	}
	errs = append(errs, s.validateAddresses(path)...)
	errs = append(errs, s.validateRoutes(path)...)
	if s.KeepHostNetwork != nil && *s.KeepHostNetwork {
		for _, f := range s.ofInterface() {
			errs = append(errs, field.Forbidden(path.Child(string(f)), "keepHostNetwork leaves the interface to the host, as it is: remove one of both"))
		}
	}
	return errs
}

// ofInterface are the fields that are set and concern an interface in the Pod.
func (s *NICSettings) ofInterface() []Field {
	var fields []Field
	for _, f := range []struct {
		field Field
		set   bool
	}{
		{"interfaceName", s.InterfaceName != nil},
		{"mtu", s.MTU != nil},
		{"addresses", len(s.Addresses) > 0},
		{"routes", len(s.Routes) > 0},
	} {
		if f.set {
			fields = append(fields, f.field)
		}
	}
	return fields
}

func validateName(path *field.Path, name string) field.ErrorList {
	switch {
	case len(name) > longestName:
		return field.ErrorList{field.Invalid(path, name, fmt.Sprintf("it has %d bytes, an interface's name at most %d: shorten it", len(name), longestName))}
	case name == "lo":
		return field.ErrorList{field.Invalid(path, name, "each Pod has an interface of that name: choose another")}
	case name == "all" || name == "default": // sysctls of all interfaces (linux, sysctl_dev_name_is_allowed)
		return field.ErrorList{field.Invalid(path, name, "the kernel has this name for all interfaces: choose another")}
	case !interfaceName.MatchString(name):
		return field.ErrorList{field.Invalid(path, name, "want letters, digits, '_', '.' and '-', beginning with a letter or digit")}
	}
	return nil
}

func (s *NICSettings) validateAddresses(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[netip.Addr]bool{}
	for i, text := range s.Addresses {
		at := path.Child("addresses").Index(i)
		prefix, err := netip.ParsePrefix(text)
		switch address := prefix.Addr(); {
		case err != nil:
			errs = append(errs, field.Invalid(at, text, "want an address with its prefix: 10.1.0.7/16 or fd00::7/64"))
		case address.IsUnspecified() || address.IsMulticast() || address.IsLoopback() || address.Is4In6():
			errs = append(errs, field.Invalid(at, text, "it cannot be an interface's address: want one host's"))
		case seen[address]:
			errs = append(errs, field.Duplicate(at, text))
		case address.Is6() && s.MTU != nil && *s.MTU < ipv6MTU:
			errs = append(errs, field.Invalid(at, text, fmt.Sprintf("IPv6 needs an mtu of %d or more, and it is %d: raise it, or remove the address", ipv6MTU, *s.MTU)))
		default:
			seen[address] = true
		}
	}
	return errs
}

func (s *NICSettings) validateRoutes(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	type key struct {
		to     string
		metric int32
	}
	seen := map[key]bool{}
	for i := range s.Routes {
		at, r := path.Child("routes").Index(i), &s.Routes[i]
		errs = append(errs, s.validateRoute(at, r)...)
		this := key{r.To, ptr.Deref(r.Metric, 0)}
		if seen[this] {
			errs = append(errs, field.Invalid(at.Child("metric"), this.metric, "another route to "+r.To+" has the same: want another metric"))
		}
		seen[this] = true
	}
	return errs
}

func (s *NICSettings) validateRoute(path *field.Path, r *Route) field.ErrorList {
	to, err := netip.ParsePrefix(r.To)
	if err != nil {
		return field.ErrorList{field.Invalid(path.Child("to"), r.To, "want a prefix: 10.0.0.0/8, or 0.0.0.0/0 for all that has no other route")}
	}
	if to.Addr().Is4In6() {
		return field.ErrorList{field.Invalid(path.Child("to"), r.To, inIPv6)}
	}
	var errs field.ErrorList
	if to != to.Masked() {
		errs = append(errs, field.Invalid(path.Child("to"), r.To, "there are bits beyond the prefix: the nearest is "+to.Masked().String()))
	}
	if r.Metric != nil && *r.Metric < 0 {
		errs = append(errs, field.Invalid(path.Child("metric"), *r.Metric, "want 0 or more"))
	}
	if to.Bits() == 0 {
		if r.Via == "" {
			errs = append(errs, field.Required(path.Child("via"), "the whole world is not on the link: say who passes it on"))
		}
		if r.Metric == nil || *r.Metric == 0 {
			errs = append(errs, field.Required(path.Child("metric"), "the Pod has a default route without one already: say 1 or more"))
		}
	}
	errs = append(errs, s.validateVia(path.Child("via"), r, to)...)
	return append(errs, s.validateFrom(path.Child("from"), r, to)...)
}

// inIPv6 is what is wrong with an IPv4 address in the clothes of IPv6 (RFC 4291, 2.5.5.2).
const inIPv6 = "it is an IPv4 address within IPv6, which the kernel does not route: write the IPv4 address"

// validateVia: the kernel takes no next hop that it cannot reach itself. Where no
// addresses are given the host's count, which are not known here.
func (s *NICSettings) validateVia(path *field.Path, r *Route, to netip.Prefix) field.ErrorList {
	if r.Via == "" {
		return nil
	}
	via, err := netip.ParseAddr(r.Via)
	switch {
	case err != nil || via.Zone() != "": // the zone is the interface's
		return field.ErrorList{field.Invalid(path, r.Via, "want an address: 10.1.0.1")}
	case via.Is4In6():
		return field.ErrorList{field.Invalid(path, r.Via, inIPv6)}
	case via.Is4() != to.Addr().Is4():
		return field.ErrorList{field.Invalid(path, r.Via, "it is of another version of IP than "+r.To+": want the same")}
	case len(s.Addresses) == 0 || via.IsLinkLocalUnicast():
		return nil
	}
	onLink := append([]string(nil), s.Addresses...)
	for _, other := range s.Routes {
		if other.Via == "" {
			onLink = append(onLink, other.To)
		}
	}
	for _, text := range onLink {
		if prefix, err := netip.ParsePrefix(text); err == nil && prefix.Bits() > 0 && prefix.Contains(via) {
			return nil
		}
	}
	return field.ErrorList{field.Invalid(path, r.Via,
		"it is not on the link ("+strings.Join(onLink, ", ")+"): want an address that is, or a further route to it without via")}
}

func (s *NICSettings) validateFrom(path *field.Path, r *Route, to netip.Prefix) field.ErrorList {
	if r.From == "" {
		return nil
	}
	from, err := netip.ParseAddr(r.From)
	switch {
	case err != nil || from.Zone() != "":
		return field.ErrorList{field.Invalid(path, r.From, "want an address: 10.1.0.7")}
	case from.Is4In6():
		return field.ErrorList{field.Invalid(path, r.From, inIPv6)}
	case from.Is4() != to.Addr().Is4():
		return field.ErrorList{field.Invalid(path, r.From, "it is of another version of IP than "+r.To+": want the same")}
	case len(s.Addresses) == 0:
		return nil
	}
	for _, text := range s.Addresses {
		if prefix, err := netip.ParsePrefix(text); err == nil && prefix.Addr() == from {
			return nil
		}
	}
	return field.ErrorList{field.Invalid(path, r.From, "it is not one of the addresses ("+strings.Join(s.Addresses, ", ")+"): want one of them")}
}

// between wants a number within bounds, and names the nearest that is.
func between(path *field.Path, value *int32, least, most int32, unit string) field.ErrorList {
	if value == nil || *value >= least && *value <= most {
		return nil
	}
	want := fmt.Sprintf("want %d to %d", least, most)
	if unit != "" {
		want += " " + unit
	}
	return field.ErrorList{field.Invalid(path, *value, fmt.Sprintf("%s: the nearest is %d", want, min(max(*value, least), most)))}
}
