package v1alpha1

import (
	"encoding/json"
	"strings"
	"testing"
)

func nicConfig(kind, fields string) string {
	if fields != "" {
		fields = "," + fields
	}
	return `{"apiVersion":"dovetail.dev/v1alpha1","kind":"` + kind + `"` + fields + `}`
}

func TestDecodeNICConfig(t *testing.T) {
	for name, test := range map[string]struct {
		fields  string
		wantErr []string // parts of the message; none means no error
	}{
		"nothing": {``, nil},
		"everything": {`"interfaceName":"net1","mtu":9000,"addresses":["10.1.0.7/16","fd00::7/64"],` +
			`"routes":[{"to":"10.2.0.0/16","via":"10.1.0.1","from":"10.1.0.7","metric":10},{"to":"::/0","via":"fd00::1","metric":1}],` +
			`"dscp":26,"requireLossless":true,"keepHostNetwork":false,"locked":["mtu","routes"]`, nil},
		"RDMA alone":             {`"keepHostNetwork":true,"trafficClass":106,"requireLossless":true`, nil},
		"routes, host addresses": {`"routes":[{"to":"10.2.0.0/16","via":"10.1.0.1"}]`, nil},
		"next hop by a route":    {`"addresses":["10.1.0.7/32"],"routes":[{"to":"0.0.0.0/0","via":"10.1.0.1","metric":5},{"to":"10.1.0.1/32"}]`, nil},
		"next hop, link local":   {`"addresses":["fd00::7/64"],"routes":[{"to":"fd01::/64","via":"fe80::1"}]`, nil},
		"name too long":          {`"interfaceName":"abcdefghijklmnop"`, []string{"interfaceName", `"abcdefghijklmnop"`, "16 bytes", "at most 15"}},
		"name with a slash":      {`"interfaceName":"a/b"`, []string{"interfaceName", `"a/b"`, "want letters"}},
		"name is a pattern":      {`"interfaceName":"eth%d"`, []string{"interfaceName", "want letters"}},
		"no name":                {`"interfaceName":""`, []string{"interfaceName", "want letters"}},
		"loopback's name":        {`"interfaceName":"lo"`, []string{"interfaceName", `"lo"`, "choose another"}},
		"kernel's name":          {`"interfaceName":"default"`, []string{"interfaceName", `"default"`, "choose another"}},
		"route to IPv4 in IPv6":  {`"routes":[{"to":"::ffff:10.0.0.0/104"}]`, []string{"routes[0].to", "write the IPv4 address"}},
		"via IPv4 in IPv6":       {`"routes":[{"to":"fd01::/64","via":"::ffff:10.0.0.1"}]`, []string{"routes[0].via", "write the IPv4 address"}},
		"from IPv4 in IPv6":      {`"routes":[{"to":"fd01::/64","from":"::ffff:10.0.0.1"}]`, []string{"routes[0].from", "write the IPv4 address"}},
		"next hop with a zone":   {`"routes":[{"to":"fd01::/64","via":"fe80::1%eth1"}]`, []string{"routes[0].via", "want an address"}},
		"source with a zone":     {`"routes":[{"to":"fd01::/64","from":"fe80::1%eth1"}]`, []string{"routes[0].from", "want an address"}},
		"MTU too small":          {`"mtu":67`, []string{"mtu", "67", "the nearest is 68"}},
		"MTU too large":          {`"mtu":65536`, []string{"mtu", "65536", "the nearest is 65535"}},
		"MTU as text":            {`"mtu":"9000"`, []string{"mtu: a string is not what belongs here: want a whole number"}},
		"MTU beyond 32 bits":     {`"mtu":99999999999`, []string{"mtu: a number 99999999999 is not", "want a whole number, of 32 bits at most"}},
		"no list":                {`"addresses":"10.1.0.7/16"`, []string{"addresses: a string is not", "want a list"}},
		"no word":                {`"requireLossless":"yes"`, []string{"requireLossless: a string is not", "want true or false"}},
		"MTU that ends IPv6":     {`"mtu":1279,"addresses":["10.1.0.7/16","fd00::7/64"]`, []string{"addresses[1]", `"fd00::7/64"`, "1280", "1279"}},
		"MTU that keeps IPv6":    {`"mtu":1280,"addresses":["fd00::7/64"]`, nil},
		"MTU for IPv4 alone":     {`"mtu":68,"addresses":["10.1.0.7/16"]`, nil},
		"no prefix":              {`"addresses":["10.0.0.1"]`, []string{"addresses[0]", `"10.0.0.1"`, "10.1.0.7/16"}},
		"no host":                {`"addresses":["10.0.0.1/8","224.0.0.1/4"]`, []string{"addresses[1]", `"224.0.0.1/4"`}},
		"twice":                  {`"addresses":["10.0.0.1/8","10.0.0.1/16"]`, []string{"addresses[1]", "Duplicate"}},
		"route to a host's bits": {`"routes":[{"to":"10.1.2.3/16"}]`, []string{"routes[0].to", "the nearest is 10.1.0.0/16"}},
		"route to nothing":       {`"routes":[{"via":"10.0.0.1"}]`, []string{"routes[0].to", "want a prefix"}},
		"route to a name":        {`"routes":[{"to":"default"}]`, []string{"routes[0].to", `"default"`, "0.0.0.0/0"}},
		"default without via":    {`"routes":[{"to":"0.0.0.0/0","metric":1}]`, []string{"routes[0].via", "Required"}},
		"default without metric": {`"routes":[{"to":"0.0.0.0/0","via":"10.0.0.1"}]`, []string{"routes[0].metric", "default route"}},
		"next hop not on link":   {`"addresses":["10.1.0.7/16"],"routes":[{"to":"10.2.0.0/16","via":"10.3.0.1"}]`, []string{"routes[0].via", `"10.3.0.1"`, "not on the link (10.1.0.7/16)"}},
		"next hop no address":    {`"routes":[{"to":"10.2.0.0/16","via":"gateway"}]`, []string{"routes[0].via", `"gateway"`}},
		"mixed versions":         {`"routes":[{"to":"10.2.0.0/16","via":"fd00::1","from":"fd00::7"}]`, []string{"routes[0].via", "routes[0].from", "another version of IP"}},
		"not its address":        {`"addresses":["10.1.0.7/16"],"routes":[{"to":"10.2.0.0/16","from":"10.1.0.8"}]`, []string{"routes[0].from", "10.1.0.8", "10.1.0.7/16"}},
		"source no address":      {`"routes":[{"to":"10.2.0.0/16","from":"me"}]`, []string{"routes[0].from", `"me"`}},
		"negative metric":        {`"routes":[{"to":"10.2.0.0/16","metric":-1}]`, []string{"routes[0].metric", "-1"}},
		"same route twice":       {`"routes":[{"to":"10.2.0.0/16"},{"to":"10.2.0.0/16"}]`, []string{"routes[1].metric", "another metric"}},
		"both classes":           {`"trafficClass":104,"dscp":26`, []string{"dscp", "trafficClass: 104", "remove one"}},
		"class too large":        {`"trafficClass":256`, []string{"trafficClass", "256", "the nearest is 255"}},
		"code point too large":   {`"dscp":64`, []string{"dscp", "64", "the nearest is 63"}},
		"host's, and changed":    {`"keepHostNetwork":true,"mtu":1500,"interfaceName":"a"`, []string{"mtu", "interfaceName", "keepHostNetwork"}},
		"no such field":          {`"rail":1`, []string{"unknown field", `rail"`}},
		"no such field of route": {`"routes":[{"to":"10.0.0.0/8","dev":"x"}]`, []string{"unknown field", `routes[0].dev"`}},
		"not to be locked":       {`"locked":["sharing"]`, []string{"locked[0]", `"sharing"`, "requireLossless"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Decode([]byte(nicConfig(NICConfigKind, test.fields)))
			says(t, err, test.wantErr)
			nested := strings.NewReplacer(`"locked"`, `"gone"`).Replace(test.fields)
			if nested != test.fields {
				return // locked is the pair's own
			}
			_, err = Decode([]byte(nicConfig(PairConfigKind, `"nic":{`+test.fields+`}`)))
			says(t, err, test.wantErr)
		})
	}
}

// says wants an error with those parts, or none where there are none.
func says(t *testing.T, err error, parts []string) {
	t.Helper()
	if (err != nil) != (parts != nil) {
		t.Fatalf("error %v", err)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %q", part, err)
		}
	}
}

func TestDecodePairConfig(t *testing.T) {
	for name, test := range map[string]struct {
		fields  string
		wantErr []string
	}{
		"both":             {`"gpu":{"computeMode":"ExclusiveProcess"},"nic":{"mtu":9000},"locked":["gpu.sharing","nic.mtu"]`, nil},
		"a GPU's fault":    {`"gpu":{"sharing":{"mps":{"activeThreadPercentage":101}}}`, []string{"gpu.sharing.mps.activeThreadPercentage", "nearest is 100"}},
		"a NIC's fault":    {`"nic":{"mtu":1}`, []string{"nic.mtu", "the nearest is 68"}},
		"GPU's field":      {`"computeMode":"Default"`, []string{`unknown field "computeMode"`}},
		"not to be locked": {`"locked":["mtu"]`, []string{"locked[0]", `"mtu"`, "nic.mtu", "gpu.sharing"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Decode([]byte(nicConfig(PairConfigKind, test.fields)))
			says(t, err, test.wantErr)
		})
	}
}

func TestOverrideOfNICs(t *testing.T) {
	for name, test := range map[string]struct {
		kind         string
		class, claim string
		want         string // of the result
		wantErr      []string
	}{
		"field by field": {
			NICConfigKind, `"mtu":9000,"addresses":["10.0.0.1/8"],"requireLossless":true`, `"mtu":1500,"interfaceName":"net1"`,
			`{"interfaceName":"net1","mtu":1500,"addresses":["10.0.0.1/8"],"requireLossless":true}`, nil,
		},
		"another traffic class": {NICConfigKind, `"trafficClass":104`, `"dscp":10`, `{"dscp":10}`, nil},
		"lists as a whole": {
			NICConfigKind, `"addresses":["10.0.0.1/8","10.0.0.2/8"]`, `"addresses":["10.0.0.3/8"]`, `{"addresses":["10.0.0.3/8"]}`, nil,
		},
		"locked": {NICConfigKind, `"locked":["mtu"]`, `"mtu":1500`, ``, []string{"mtu: Forbidden", "the DeviceClass has locked it"}},
		"a pair's NIC": {
			PairConfigKind, `"nic":{"dscp":26},"locked":["nic.dscp"]`, `"nic":{"dscp":10},"gpu":{"computeMode":"Default"}`,
			``, []string{"nic.dscp: Forbidden"},
		},
		"a pair beside what is locked": {
			PairConfigKind, `"nic":{"dscp":26},"locked":["nic.dscp"]`, `"nic":{"mtu":9000},"gpu":{"computeMode":"Default"}`,
			`{"gpu":{"computeMode":"Default"},"nic":{"mtu":9000,"dscp":26},"locked":["nic.dscp"]}`, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			merged := New(test.kind)
			for i, fields := range []string{test.class, test.claim} {
				config, err := Decode([]byte(nicConfig(test.kind, fields)))
				if err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					err = Merge(merged, config)
				} else if err = Override(merged, config); err != nil || test.wantErr != nil {
					says(t, err, test.wantErr)
					return
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if got, err := json.Marshal(merged); err != nil || string(got) != test.want {
				t.Errorf("got %s, %v, want %s", got, err, test.want)
			}
		})
	}
}

func TestMergeOfAnotherKind(t *testing.T) {
	says(t, Merge(&NICConfig{}, &GPUConfig{}), []string{"kind", "GPUConfig", "configured by a NICConfig"})
}
