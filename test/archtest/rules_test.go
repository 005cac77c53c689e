package archtest

// A rule is one line of the architecture. Patterns are import paths, those of
// this project without its module; "a/..." is a and all below it, "*test" is all
// that end in test: packages for tests, which are under no rule themselves.
type rule struct {
	name string
	// of the packages that the rule is about.
	of []string
	// not is what they must not import.
	not []string
	// except are packages that may.
	except []string
	// through: not over any number of other packages either.
	through bool
	why     string
}

// anything is all code that ships; tests and the tools in hack and test may use
// what they need.
var anything = []string{"api/...", "cmd/...", "pkg/..."}

var rules = []rule{
	{
		name: "the core knows no Kubernetes",
		of: []string{
			"pkg/machine", "pkg/plan", "pkg/nccl", "pkg/journal", "pkg/hardware/...", "pkg/simulator/...",
			"pkg/failure", "pkg/patience", "pkg/lock", "pkg/atomicfile", "pkg/failpoint",
		},
		not:     []string{"k8s.io/..."},
		through: true,
		why:     "hardware, its plans and its records outlive every API version; and their tests build in a second",
	},
	{
		name:    "the hook starts at once",
		of:      []string{"cmd/dovetail-hook"},
		not:     []string{"k8s.io/...", "google.golang.org/...", "net/http"},
		through: true,
		why:     "it is run anew for each container, which waits for it",
	},
	{
		name:    "the catalog knows the API's types, but no client",
		of:      []string{"pkg/catalog", "pkg/class"},
		not:     []string{"k8s.io/client-go/...", "k8s.io/dynamic-resource-allocation/..."},
		through: true,
		why:     "what is published is a function of the machine alone, so it can be printed and tested without a cluster",
	},
	{
		name: "the functional core does no input or output",
		of:   []string{"pkg/machine", "pkg/catalog", "pkg/plan", "pkg/class"},
		not:  []string{"os", "os/...", "net", "net/...", "io/fs", "syscall", "golang.org/x/sys/...", "math/rand/...", "log/...", "k8s.io/klog/..."},
		why:  "the same input gives the same output: that is what makes goldens, fuzzing and an unchanged machine without API writes possible",
	},
	{
		name:   "only the agent is a kubelet plugin",
		of:     anything,
		not:    []string{"k8s.io/dynamic-resource-allocation/kubeletplugin/..."},
		except: []string{"pkg/agent"},
		why:    "claims are prepared by calls that a test can make without a kubelet",
	},
	{
		name:   "only the NVML adapter speaks NVML",
		of:     anything,
		not:    []string{"github.com/NVIDIA/go-nvml/..."},
		except: []string{"pkg/hardware/nvml", "pkg/cdi", "cmd/libnvidia-ml/..."},
		why:    "a foreign library has one owner, who turns its errors into ours (nvcdi's interface is made of NVML's types, so pkg/cdi sees them)",
	},
	{
		name:   "only pkg/cdi uses nvcdi",
		of:     anything,
		not:    []string{"github.com/NVIDIA/nvidia-container-toolkit/..."},
		except: []string{"pkg/cdi"},
		why:    "a foreign library has one owner",
	},
	{
		name:   "only MPS runs programs",
		of:     anything,
		not:    []string{"os/exec"},
		except: []string{"pkg/mps/...", "cmd/dovetail-mps", "cmd/libnvidia-ml/internal/stubgen"},
		why:    "a fork costs milliseconds and fails in ways of its own; all other hardware is reached by calls (stubgen is a generator, and not in any binary)",
	},
	{
		name:   "only the RDMA adapter and the simulator's stand-ins speak netlink",
		of:     anything,
		not:    []string{"github.com/vishvananda/netlink/...", "github.com/vishvananda/netns/...", "github.com/mdlayher/..."},
		except: []string{"pkg/hardware/rdma/...", "pkg/simulator/standin"},
		why:    "a foreign library has one owner (stand-ins for a simulated machine's interfaces are veths: the simulator plays card and kernel to the adapter, and must not lean on it)",
	},
	{
		name:   "only controllers use controller-runtime",
		of:     anything,
		not:    []string{"sigs.k8s.io/controller-runtime/..."},
		except: []string{"pkg/controller/...", "cmd/dovetail-controller"},
		why:    "the agent runs on every node and must stay small",
	},
	{
		name:   "implementations are chosen by commands",
		of:     []string{"api/...", "pkg/..."},
		not:    []string{"pkg/hardware/nvml", "pkg/hardware/host", "pkg/hardware/rdma/...", "pkg/hardware/mps", "pkg/simulator/..."},
		except: []string{"pkg/simulator/...", "pkg/hardware/rdma/..."},
		why:    "everything above the ports runs on any implementation; the simulated machine is below NVML, not beside it",
	},
	{
		name:    "the agent ships without the simulator",
		of:      []string{"cmd/dovetail-node", "cmd/dovetail-controller", "cmd/dovetail-hook", "cmd/dovetail-mps"},
		not:     []string{"pkg/simulator/..."},
		through: true,
		why:     "the binary that is tested is the binary that ships: there is no mock mode in it",
	},
	{
		name: "the journal knows no hardware",
		of:   []string{"pkg/journal"},
		not:  []string{"pkg/hardware/...", "pkg/plan", "pkg/machine", "pkg/catalog"},
		why:  "a record must be readable whatever became of what it records",
	},
	{
		name: "nothing that ships depends on tests or tools",
		of:   anything,
		not:  []string{"test/...", "hack/...", "testing", "testing/...", "*test"},
		why:  "what is built for users has nothing in it that is not for them",
	},
}

// layers are the project's packages from the bottom up. A package imports only
// from lower lines, and from its own tree.
var layers = [][]string{
	{"api/...", "demo/machines", "pkg/failure"},
	{"pkg/atomicfile", "pkg/failpoint", "pkg/lock", "pkg/patience"},
	{"pkg/machine"},
	{"pkg/hardware", "pkg/nccl"},
	{"pkg/hardware/...", "pkg/simulator/..."},
	{"pkg/catalog", "pkg/plan", "pkg/cdi", "pkg/journal", "pkg/mps/..."},
	{"pkg/parameters", "pkg/nodenetwork"},
	{"pkg/claim", "pkg/class"},
	{"pkg/telemetry", "pkg/classwatch"},
	{"pkg/agent", "pkg/controller/...", "pkg/admission/...", "pkg/certificates", "pkg/command/..."},
	{"cmd/...", "demo"},
}
