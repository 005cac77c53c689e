// SPDX-License-Identifier: GPL-2.0
/*
 * fakeroce: the control plane of a RoCE device, for tests; no data is moved.
 *
 * "rdma link add NAME type fakeroce netdev ETH" makes an RDMA device beside ETH,
 * as mlx5 has one: its parent is ETH's PCI function, it stays when ETH moves to
 * another network namespace, it can be moved itself, it has GIDs that follow ETH's
 * addresses, and it goes when the function loses its driver. ETH gets DCB (PFC,
 * ETS, application priorities), except for virtual functions, which have none of
 * their own.
 */
#include <linux/dcbnl.h>
#include <linux/etherdevice.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/pci.h>
#include <net/addrconf.h>
#include <net/dcbnl.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_netlink.h>

#define GIDS 255
#define CLASSES 8

/* For links that are added afterwards. */
static uint pfc_classes = CLASSES;
module_param(pfc_classes, uint, 0644);
MODULE_PARM_DESC(pfc_classes, "so many priorities can be lossless; the port drops the others without a word");
static bool apptrust;
module_param(apptrust, bool, 0644);
MODULE_PARM_DESC(apptrust, "the port has an order of what it trusts (DCB_ATTR_DCB_APP_TRUST_TABLE)");

struct froce {
	struct ib_device ibdev;
	struct list_head all;
	struct net_device *ndev;	/* compared only, never followed: no reference is held */
	struct ieee_pfc pfc;
	struct ieee_ets ets;
	u8 trusted[IEEE_8021QAZ_APP_SEL_MAX];
	int trusts;
};

/* All devices there are, by their member all. */
static LIST_HEAD(devices);
static DEFINE_MUTEX(devices_lock);

static struct froce *to_froce(struct ib_device *d)
{
	return container_of(d, struct froce, ibdev);
}

/* What the RDMA core asks. */

static int query_device(struct ib_device *d, struct ib_device_attr *a, struct ib_udata *u)
{
	memset(a, 0, sizeof(*a));
	a->sys_image_guid = d->node_guid;
	a->vendor_id = 0x02c9;
	a->vendor_part_id = 4129;
	a->kernel_cap_flags = IBK_ALLOW_USER_UNREG;
	a->max_qp = 16;
	a->max_cq = 16;
	a->max_mr = 16;
	a->max_pd = 16;
	a->max_qp_wr = 16;
	a->max_cqe = 16;
	a->max_pkeys = 1;
	return 0;
}

static int query_port(struct ib_device *d, u32 port, struct ib_port_attr *a)
{
	struct net_device *n = ib_device_get_netdev(d, port);
	bool up = n && netif_running(n) && netif_carrier_ok(n);

	dev_put(n);
	a->state = up ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	a->phys_state = up ? IB_PORT_PHYS_STATE_LINK_UP : IB_PORT_PHYS_STATE_DISABLED;
	a->max_mtu = IB_MTU_4096;
	a->active_mtu = IB_MTU_1024;
	a->gid_tbl_len = GIDS;
	a->ip_gids = true;
	a->max_msg_sz = 1u << 30;
	a->pkey_tbl_len = 1;
	a->active_width = IB_WIDTH_4X;	/* 400 Gb/s together with NDR */
	a->active_speed = IB_SPEED_NDR;
	return 0;
}

static int get_port_immutable(struct ib_device *d, u32 port, struct ib_port_immutable *im)
{
	im->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE | RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	im->gid_tbl_len = GIDS;
	im->pkey_tbl_len = 1;
	im->max_mad_size = 0;	/* so there is no umad and no issm */
	return 0;
}

static enum rdma_link_layer get_link_layer(struct ib_device *d, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

static int query_pkey(struct ib_device *d, u32 port, u16 index, u16 *pkey)
{
	*pkey = 0xffff;
	return 0;
}

static int change_gid_add(const struct ib_gid_attr *a, void **context) { return 0; }
static int change_gid_del(const struct ib_gid_attr *a, void **context) { return 0; }
static int alloc_ucontext(struct ib_ucontext *c, struct ib_udata *u) { return 0; }
static void dealloc_ucontext(struct ib_ucontext *c) { }
/* With it the device can change its namespace while processes have it open. */
static void disassociate_ucontext(struct ib_ucontext *c) { }
static int alloc_pd(struct ib_pd *p, struct ib_udata *u) { return 0; }
static int dealloc_pd(struct ib_pd *p, struct ib_udata *u) { return 0; }

static void get_dev_fw_str(struct ib_device *d, char *s)
{
	snprintf(s, IB_FW_VERSION_NAME_MAX, "28.43.1014");
}

static void dealloc_driver(struct ib_device *d)
{
	struct froce *f = to_froce(d);

	mutex_lock(&devices_lock);
	list_del_init(&f->all);
	mutex_unlock(&devices_lock);
}

static ssize_t hca_type_show(struct device *dev, struct device_attribute *a, char *b)
{
	return sysfs_emit(b, "MT4129\n");
}
static DEVICE_ATTR_RO(hca_type);

static ssize_t board_id_show(struct device *dev, struct device_attribute *a, char *b)
{
	return sysfs_emit(b, "MT_0000000838\n");
}
static DEVICE_ATTR_RO(board_id);

static struct attribute *attributes[] = { &dev_attr_hca_type.attr, &dev_attr_board_id.attr, NULL };
static const struct attribute_group attribute_group = { .attrs = attributes };

static const struct ib_device_ops device_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.uverbs_abi_ver = 1,
	.query_device = query_device,
	.query_port = query_port,
	.get_port_immutable = get_port_immutable,
	.get_link_layer = get_link_layer,
	.query_pkey = query_pkey,
	.add_gid = change_gid_add,
	.del_gid = change_gid_del,
	.alloc_ucontext = alloc_ucontext,
	.dealloc_ucontext = dealloc_ucontext,
	.disassociate_ucontext = disassociate_ucontext,
	.alloc_pd = alloc_pd,
	.dealloc_pd = dealloc_pd,
	.get_dev_fw_str = get_dev_fw_str,
	.dealloc_driver = dealloc_driver,
	.device_group = &attribute_group,
	.size_ib_ucontext = sizeof(struct ib_ucontext),
	.size_ib_pd = sizeof(struct ib_pd),
};

/* DCB, which igb does not have. */

/* of_netdev is called with the list locked. */
static struct froce *of_netdev(struct net_device *n)
{
	struct froce *f;

	list_for_each_entry(f, &devices, all)
		if (f->ndev == n)
			return f;
	return NULL;
}

#define WITH_FROCE(n, body)							\
({										\
	struct froce *f;							\
	int ret = -EOPNOTSUPP;							\
										\
	mutex_lock(&devices_lock);						\
	f = of_netdev(n);							\
	if (f) {								\
		ret = 0;							\
		body;								\
	}									\
	mutex_unlock(&devices_lock);						\
	ret;									\
})

static int ieee_getpfc(struct net_device *n, struct ieee_pfc *p)
{
	return WITH_FROCE(n, *p = f->pfc);
}

static u8 lowest(u8 set, uint count)
{
	u8 kept = 0;

	for (; set && count; count--) {
		kept |= set & -set;
		set &= set - 1;
	}
	return kept;
}

static int ieee_setpfc(struct net_device *n, struct ieee_pfc *p)
{
	return WITH_FROCE(n, f->pfc.pfc_en = lowest(p->pfc_en, f->pfc.pfc_cap));
}

static int ieee_getets(struct net_device *n, struct ieee_ets *e)
{
	return WITH_FROCE(n, *e = f->ets);
}

static int ieee_setets(struct net_device *n, struct ieee_ets *e)
{
	return WITH_FROCE(n, f->ets = *e; f->ets.ets_cap = CLASSES);
}

static int getapptrust(struct net_device *n, u8 *selectors, int *count)
{
	return WITH_FROCE(n, memcpy(selectors, f->trusted, *count = f->trusts));
}

static int setapptrust(struct net_device *n, u8 *selectors, int count)
{
	return WITH_FROCE(n, memcpy(f->trusted, selectors, f->trusts = count));
}

static int ieee_setapp(struct net_device *n, struct dcb_app *a) { return dcb_ieee_setapp(n, a); }
static int ieee_delapp(struct net_device *n, struct dcb_app *a) { return dcb_ieee_delapp(n, a); }
static u8 getdcbx(struct net_device *n) { return DCB_CAP_DCBX_HOST | DCB_CAP_DCBX_VER_IEEE; }
static u8 setdcbx(struct net_device *n, u8 mode) { return mode != getdcbx(n); }

#define COMMON_DCB_OPS			\
	.ieee_getpfc = ieee_getpfc,	\
	.ieee_setpfc = ieee_setpfc,	\
	.ieee_getets = ieee_getets,	\
	.ieee_setets = ieee_setets,	\
	.ieee_setapp = ieee_setapp,	\
	.ieee_delapp = ieee_delapp,	\
	.getdcbx = getdcbx,		\
	.setdcbx = setdcbx

static const struct dcbnl_rtnl_ops dcb_ops = { COMMON_DCB_OPS };
static const struct dcbnl_rtnl_ops dcb_ops_with_trust = {
	COMMON_DCB_OPS,
	.dcbnl_getapptrust = getapptrust,
	.dcbnl_setapptrust = setapptrust,
};

/* Coming and going. */

static void follow(struct froce *f, struct net_device *n, unsigned long event)
{
	struct ib_event e = { .device = &f->ibdev, .element.port_num = 1 };

	switch (event) {
	case NETDEV_UNREGISTER:	/* a move begins with it, too */
		ib_device_set_netdev(&f->ibdev, NULL, 1);
		break;
	case NETDEV_REGISTER:
		ib_device_set_netdev(&f->ibdev, n, 1);
		break;
	case NETDEV_UP:
	case NETDEV_CHANGE:
	case NETDEV_DOWN:
		e.event = netif_running(n) && netif_carrier_ok(n) ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR;
		ib_dispatch_event(&e);
		break;
	}
}

/*
 * One notifier for all: to take one away waits for namespaces that are ending, which
 * may wait for the very device that is being unregistered.
 */
static int netdev_event(struct notifier_block *nb, unsigned long event, void *p)
{
	struct net_device *n = netdev_notifier_info_to_dev(p);
	struct froce *f;

	mutex_lock(&devices_lock);
	f = of_netdev(n);
	if (f)
		follow(f, n, event);
	mutex_unlock(&devices_lock);
	return NOTIFY_DONE;
}

static struct notifier_block netdev_events = { .notifier_call = netdev_event };

/* A PCI function is about to lose its driver: the RDMA device goes first. */
static int pci_event(struct notifier_block *nb, unsigned long event, void *p)
{
	struct froce *f, *found;

	if (event != BUS_NOTIFY_UNBIND_DRIVER)
		return NOTIFY_DONE;
	do {
		found = NULL;
		mutex_lock(&devices_lock);
		list_for_each_entry(f, &devices, all)
			if (f->ibdev.dev.parent == p && ib_device_try_get(&f->ibdev)) {
				found = f;
				break;
			}
		mutex_unlock(&devices_lock);
		if (found)
			ib_unregister_device_and_put(&found->ibdev);
	} while (found);
	return NOTIFY_DONE;
}

static struct notifier_block pci_events = { .notifier_call = pci_event };

static bool is_virtual_function(struct net_device *n)
{
	struct device *parent = n->dev.parent;

	return parent && dev_is_pci(parent) && to_pci_dev(parent)->is_virtfn;
}

static int newlink(const char *name, struct net_device *ndev)
{
	struct froce *f = ib_alloc_device(froce, ibdev);
	struct ib_device *d;
	int ret;

	if (!f)
		return -ENOMEM;
	INIT_LIST_HEAD(&f->all);
	d = &f->ibdev;
	d->node_type = RDMA_NODE_IB_CA;
	d->phys_port_cnt = 1;
	d->num_comp_vectors = 1;
	d->dev.parent = ndev->dev.parent;
	strscpy(d->node_desc, "fakeroce", sizeof(d->node_desc));
	addrconf_addr_eui48((u8 *)&d->node_guid, ndev->dev_addr);
	ib_set_device_ops(d, &device_ops);
	f->ndev = ndev;
	f->pfc.pfc_cap = min_t(uint, pfc_classes, CLASSES);
	f->ets.ets_cap = CLASSES;

	ret = ib_device_set_netdev(d, ndev, 1);
	if (!ret)
		ret = ib_register_device(d, name, NULL);
	if (ret) {
		ib_dealloc_device(d);
		return ret;
	}
	mutex_lock(&devices_lock);
	list_add(&f->all, &devices);
	mutex_unlock(&devices_lock);
	/* Never taken away again: the module stays until the machine ends. */
	if (!is_virtual_function(ndev))
		WRITE_ONCE(ndev->dcbnl_ops, apptrust ? &dcb_ops_with_trust : &dcb_ops);
	return 0;
}

static struct rdma_link_ops link_ops = { .type = "fakeroce", .newlink = newlink };

static int __init fakeroce_init(void)
{
	int ret = register_netdevice_notifier(&netdev_events);

	if (ret)
		return ret;
	ret = bus_register_notifier(&pci_bus_type, &pci_events);
	if (ret) {
		unregister_netdevice_notifier(&netdev_events);
		return ret;
	}
	rdma_link_register(&link_ops);
	return 0;
}

module_init(fakeroce_init);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("control plane of a RoCE device, for tests");
MODULE_ALIAS_RDMA_LINK("fakeroce");
