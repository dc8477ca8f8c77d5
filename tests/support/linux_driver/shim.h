/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * The declarations of the kernel that drivers/perf/arm_spe_pmu.c requires. The compiler includes this file before the
 * driver, which is not modified; the headers that the driver includes are empty files. Encodings and fields of
 * registers are those of the kernel (`library.py` writes spe_regs.h from its files), so this file does not affect what
 * the driver writes.
 */
#ifndef SPE_SHIM_H
#define SPE_SHIM_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

/* ---- types and compiler attributes ---- */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;         /* as in the kernel, for %llx */
typedef long long s64;
typedef unsigned short umode_t;

#define __percpu
#define __init
#define __exit
#define fallthrough             __attribute__((fallthrough))
#define static_assert(c)        _Static_assert(c, #c)
#define container_of(p, type, member) ((type *)((char *)(p) - offsetof(type, member)))

enum { ENOENT = 2, EIO = 5, ENXIO = 6, ENOMEM = 12, EACCES = 13, EPERM = 1, EBUSY = 16, EINVAL = 22,
       ENOSPC = 28, EOPNOTSUPP = 95 };

/* ---- bits and arithmetic ---- */
#define UL(x)                   x##UL
#define BIT(n)                  (1UL << (n))
#define BIT_ULL(n)              (1ULL << (n))
#define GENMASK(h, l)           ((~0UL >> (63 - (h))) & (~0UL << (l)))
#define GENMASK_ULL(h, l)       ((~0ULL >> (63 - (h))) & (~0ULL << (l)))
#define SPE_LSB(mask)           ((u64)(mask) & -(u64)(mask))
#define FIELD_GET(mask, reg)    (((u64)(reg) & (mask)) / SPE_LSB(mask))
#define FIELD_PREP(mask, val)   (((u64)(val) * SPE_LSB(mask)) & (mask))
#define min(a, b)               ((a) < (b) ? (a) : (b))
#define roundup(x, y)           (((x) + (y) - 1) / (y) * (y))
#define round_down(x, y)        ((x) & ~((u64)(y) - 1))
#define round_up(x, y)          round_down((x) + ((y) - 1), y)
#define IS_ALIGNED(x, a)        (((x) & ((u64)(a) - 1)) == 0)
#define SZ_2K                   2048

/* ---- System registers and barriers, which the tests observe ---- */
#define sys_reg(op0, op1, crn, crm, op2) \
    ((u32)(op0) << 19 | (u32)(op1) << 16 | (u32)(crn) << 12 | (u32)(crm) << 8 | (u32)(op2) << 5)

u64 spe_shim_read(u32 encoding);
void spe_shim_write(u32 encoding, u64 value);
void spe_shim_barrier(const char *name);

#define read_sysreg_s(enc)      spe_shim_read(enc)
#define write_sysreg_s(v, enc)  spe_shim_write(enc, v)
#define read_cpuid(reg)         spe_shim_read(SYS_##reg)
#define cpuid_feature_extract_unsigned_field(v, shift) ((unsigned int)((v) >> (shift)) & 15)
#define isb()                   spe_shim_barrier("ISB")
#define psb_csync()             spe_shim_barrier("PSB CSYNC")
#define dsb(domain)             spe_shim_barrier("DSB " #domain)

/* ---- differences between kernels: spe_set_options() ---- */
struct spe_options {
    int pid_in_contextidr;  /* CONFIG_PID_IN_CONTEXTIDR */
    int act_on_truncate;    /* the perf core stops an event whose buffer has overrun, at once */
};
extern struct spe_options spe_options;

#define IS_ENABLED(option)              (option)
#define CONFIG_PID_IN_CONTEXTIDR        (spe_options.pid_in_contextidr)
#define arm64_kernel_unmapped_at_el0()  0
#define perf_allow_kernel()             0
#define perfmon_capable()               1

/* ---- messages ---- */
void spe_shim_message(const char *format, ...);
#define pr_err_ratelimited(format, ...) spe_shim_message(pr_fmt(format), ##__VA_ARGS__)
#define dev_err(dev, format, ...)       spe_shim_message(format, ##__VA_ARGS__)
#define dev_warn(dev, format, ...)      spe_shim_message(format, ##__VA_ARGS__)
#define dev_warn_once                   dev_warn
#define dev_info(dev, format, ...)      ((void)0)
#define WARN(condition, format, ...)    spe_shim_message(format, ##__VA_ARGS__)

/* ---- one CPU, number 0 ---- */
typedef struct { unsigned long bits[1]; } cpumask_t;
#define cpumask_test_cpu(cpu, mask)     ((int)((mask)->bits[0] >> (cpu)) & 1)
#define cpumap_print_to_pagebuf(list, buf, mask) sysfs_emit(buf, "0\n")
#define smp_processor_id()              0
#define raw_smp_processor_id()          0
#define cpu_to_node(cpu)                0
#define this_cpu_ptr(p)                 (p)
#define alloc_percpu(type)              ((type *)calloc(1, sizeof(type)))
#define free_percpu(p)                  free(p)
#define smp_call_function_any(mask, fn, info, wait) ((fn)(info), 0)

struct hlist_node { void *unused; };
#define hlist_entry_safe(n, type, member) ((n) ? container_of(n, type, member) : NULL)
enum cpuhp_state { CPUHP_AP_ONLINE_DYN = 1 };
typedef int (*spe_cpuhp_fn)(unsigned int cpu, struct hlist_node *node);
int cpuhp_setup_state_multi(int state, const char *name, spe_cpuhp_fn startup, spe_cpuhp_fn teardown);
int cpuhp_state_add_instance(int state, struct hlist_node *node);
void cpuhp_state_remove_instance(int state, struct hlist_node *node);
#define cpuhp_remove_multi_state(state) ((void)(state))

/* ---- memory ---- */
extern void *calloc(size_t n, size_t size);
extern void free(void *p);
#define GFP_KERNEL                      0
#define devm_kzalloc(dev, size, gfp)    calloc(1, size) /* never freed */
#define kzalloc_node(size, gfp, node)   calloc(1, size)
#define kcalloc(n, size, gfp)           calloc(n, size)
#define kfree(p)                        free(p)
char *devm_kasprintf(void *dev, int gfp, const char *fmt, ...);

#ifndef PAGE_SHIFT
#define PAGE_SHIFT                      12
#endif
#define PAGE_SIZE                       (1UL << PAGE_SHIFT)
struct page;
#define virt_to_page(address)           ((struct page *)(address))
#define VM_MAP                          0
#define PAGE_KERNEL                     0
#define vmap(list, n, flags, prot)      ((void *)(list)[0])     /* the pages are contiguous */
#define vunmap(address)                 ((void)(address))

typedef struct { int v; } atomic_t;
#define ATOMIC_INIT(i)                  { (i) }
#define atomic_inc_return(a)            (++(a)->v)
typedef struct { s64 v; } local64_t;
#define local64_read(l)                 ((l)->v)
#define local64_set(l, x)               ((l)->v = (s64)(x))

/* ---- devices, sysfs ---- */
#define S_IRUGO                         0444
struct attribute { const char *name; umode_t mode; };
struct kobject { void *unused; };
struct device { struct kobject kobj; void *drvdata; };
struct device_attribute {
    struct attribute attr;
    ssize_t (*show)(struct device *dev, struct device_attribute *attr, char *buf);
    ssize_t (*store)(struct device *dev, struct device_attribute *attr, const char *buf, size_t n);
};
struct dev_ext_attribute { struct device_attribute attr; void *var; };
struct attribute_group {
    const char *name;
    umode_t (*is_visible)(struct kobject *kobj, struct attribute *attr, int n);
    struct attribute **attrs;
};
#define __ATTR(n, m, s, t)      { .attr = { .name = #n, .mode = m }, .show = s, .store = t }
#define DEVICE_ATTR_RO(n)       struct device_attribute dev_attr_##n = __ATTR(n, S_IRUGO, n##_show, NULL)
#define PMU_FORMAT_ATTR(n, text)                                                                \
    static ssize_t n##_show(struct device *d, struct device_attribute *a, char *page)       \
    { return sysfs_emit(page, "%s", text "\n"); }                                           \
    static struct device_attribute format_attr_##n = __ATTR(n, S_IRUGO, n##_show, NULL)
#define kobj_to_dev(k)          container_of(k, struct device, kobj)
#define dev_get_drvdata(d)      ((d)->drvdata)
int sysfs_emit(char *page, const char *fmt, ...);

struct platform_device { struct device dev; };
struct of_device_id { char compatible[128]; const void *data; };
struct platform_device_id { char name[24]; unsigned long driver_data; };
struct platform_driver {
    int (*probe)(struct platform_device *pdev);
#ifdef SPE_REMOVE_RETURNS_INT
    int (*remove)(struct platform_device *pdev);
#else
    void (*remove)(struct platform_device *pdev);
#endif
    void (*remove_new)(struct platform_device *pdev);
    const struct platform_device_id *id_table;
    struct {
        const char *name;
        const struct of_device_id *of_match_table;
        bool suppress_bind_attrs;
    } driver;
};
int platform_driver_register(struct platform_driver *drv);
void platform_driver_unregister(struct platform_driver *drv);
#define platform_set_drvdata(pdev, p)   ((pdev)->dev.drvdata = (p))
#define platform_get_drvdata(pdev)      ((pdev)->dev.drvdata)
#define of_match_ptr(table)             (table)

extern int (*const spe_module_init)(void);
extern void (*const spe_module_exit)(void);
#define module_init(fn)                 int (*const spe_module_init)(void) = fn
#define module_exit(fn)                 void (*const spe_module_exit)(void) = fn
#define THIS_MODULE                     NULL
#define MODULE_DEVICE_TABLE(kind, t)
#define MODULE_DESCRIPTION(s)
#define MODULE_AUTHOR(s)
#define MODULE_LICENSE(s)

/* ---- interrupts ---- */
typedef int irqreturn_t;
enum { IRQ_NONE = 0, IRQ_HANDLED = 1, IRQ_TYPE_NONE = 0, SPE_IRQ = 21 /* the usual PPI */ };
#define platform_get_irq(pdev, n)                       SPE_IRQ
#define irq_is_percpu(irq)                              1
#define irq_get_percpu_devid_partition(irq, mask)       ((mask)->bits[0] = 1, 0)
int request_percpu_irq(int irq, irqreturn_t (*fn)(int irq, void *dev), const char *name, void *dev);
void free_percpu_irq(int irq, void *dev);
void enable_percpu_irq(int irq, int type);
void disable_percpu_irq(int irq);
void irq_work_run(void);

/* ---- perf ---- */
#define PERF_EVENT_FLAG_ARCH    0xffff
enum { PERF_EF_START = 1, PERF_EF_RELOAD = 2, PERF_EF_UPDATE = 4 };
enum { PERF_HES_STOPPED = 1, PERF_HES_UPTODATE = 2 };
enum { PERF_AUX_FLAG_TRUNCATED = 1, PERF_AUX_FLAG_OVERWRITE = 2, PERF_AUX_FLAG_PARTIAL = 4,
       PERF_AUX_FLAG_COLLISION = 8 };
enum { PERF_PMU_CAP_EXCLUSIVE = 0x10, PERF_PMU_CAP_ITRACE = 0x20 };
enum { perf_sw_context = 1 };

struct perf_event_attr {
    u32 type;
    u64 config, config1, config2, config3, config4, sample_period;
    bool exclude_user, exclude_kernel, exclude_hv, exclude_idle, freq;
};
struct hw_perf_event { int state, flags; u64 sample_period; local64_t period_left; };
struct perf_event {
    struct pmu *pmu;
    struct perf_event_attr attr;
    struct hw_perf_event hw;
    int cpu;
};
struct pmu {
    void *module;
    struct device *parent;
    int type, capabilities, task_ctx_nr;
    const char *name;
    const struct attribute_group **attr_groups;
    int (*event_init)(struct perf_event *event);
    int (*add)(struct perf_event *event, int flags);
    void (*del)(struct perf_event *event, int flags);
    void (*start)(struct perf_event *event, int flags);
    void (*stop)(struct perf_event *event, int flags);
    void (*read)(struct perf_event *event);
    void *(*setup_aux)(struct perf_event *event, void **pages, int nr_pages, bool overwrite);
    void (*free_aux)(void *aux);
};
struct perf_output_handle {
    struct perf_event *event;
    struct spe_ring *rb;
    unsigned long head, size, wakeup;
    u64 aux_flags;
};
int perf_pmu_register(struct pmu *pmu, const char *name, int type);
void perf_pmu_unregister(struct pmu *pmu);
void *perf_aux_output_begin(struct perf_output_handle *handle, struct perf_event *event);
void perf_aux_output_end(struct perf_output_handle *handle, unsigned long size);
int perf_aux_output_skip(struct perf_output_handle *handle, unsigned long size);
void perf_aux_output_flag(struct perf_output_handle *handle, u64 flags);
void *perf_get_aux(struct perf_output_handle *handle);

#include "spe_regs.h"           /* written by library.py */

#endif
