/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * The kernel around arm_spe_pmu.c: a bus, one CPU and perf's AUX buffers, each as small as the driver allows. The
 * functions of perf are written from their specification, not copied. `binding.py` calls the exported functions.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include "shim.h"

#define API __attribute__((visibility("default")))
#define SLOTS 2

struct spe_options spe_options;

API void spe_set_options(int pid_in_contextidr, int act_on_truncate)
{
    spe_options.pid_in_contextidr = pid_in_contextidr;
    spe_options.act_on_truncate = act_on_truncate;
}

/* ---- registers, barriers, messages ---- */

static u64 (*on_read)(u32 encoding);
static void (*on_write)(u32 encoding, u64 value);
static void (*on_barrier)(const char *name);
static void (*on_message)(const char *line);

API void spe_set_callbacks(u64 (*read)(u32), void (*write)(u32, u64), void (*barrier)(const char *),
                           void (*message)(const char *))
{
    on_read = read;
    on_write = write;
    on_barrier = barrier;
    on_message = message;
}

u64 spe_shim_read(u32 encoding) { return on_read(encoding); }
void spe_shim_write(u32 encoding, u64 value) { on_write(encoding, value); }
void spe_shim_barrier(const char *name) { on_barrier(name); }

void spe_shim_message(const char *format, ...)
{
    char line[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    line[strcspn(line, "\n")] = 0;
    on_message(line);
}

/* ---- strings ---- */

int sysfs_emit(char *page, const char *format, ...)
{
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(page, PAGE_SIZE, format, arguments);
    va_end(arguments);
    return length;
}

char *devm_kasprintf(void *device, int gfp, const char *format, ...)
{
    va_list arguments;
    char *text;

    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    va_end(arguments);
    return text;
}

/* ---- bus, CPU, interrupt controller ---- */

static struct platform_driver *driver;
static struct platform_device device;

int platform_driver_register(struct platform_driver *registered)
{
    driver = registered;
    return 0;
}

void platform_driver_unregister(struct platform_driver *registered) { driver = NULL; }

static spe_cpuhp_fn cpu_startup, cpu_teardown;
static struct hlist_node *cpu_instance;

int cpuhp_setup_state_multi(int state, const char *name, spe_cpuhp_fn startup, spe_cpuhp_fn teardown)
{
    cpu_startup = startup;
    cpu_teardown = teardown;
    return state;
}

int cpuhp_state_add_instance(int state, struct hlist_node *node)
{
    cpu_instance = node;
    return cpu_startup(0, node);
}

void cpuhp_state_remove_instance(int state, struct hlist_node *node)
{
    cpu_teardown(0, node);
    cpu_instance = NULL;
}

static irqreturn_t (*irq_handler)(int irq, void *context);
static void *irq_context;
static bool irq_enabled;

int request_percpu_irq(int irq, irqreturn_t (*handler)(int, void *), const char *name, void *context)
{
    irq_handler = handler;
    irq_context = context;
    return 0;
}

void free_percpu_irq(int irq, void *context) { irq_handler = NULL; }
void enable_percpu_irq(int irq, int type) { irq_enabled = true; }
void disable_percpu_irq(int irq) { irq_enabled = false; }

static struct pmu *pmu;

int perf_pmu_register(struct pmu *registered, const char *name, int type)
{
    pmu = registered;
    pmu->name = name;
    pmu->type = type;
    return 0;
}

void perf_pmu_unregister(struct pmu *registered) { pmu = NULL; }

API int spe_probe(void)
{
    int error = spe_module_init();

    return error ? error : driver->probe(&device);
}

API int spe_cpu(int online) { return (online ? cpu_startup : cpu_teardown)(0, cpu_instance); }

/* ---- perf: events, each with its AUX buffer ---- */

/* The body of a PERF_RECORD_AUX. */
struct spe_aux_record { u64 offset, size, flags; };

struct spe_ring {
    u8 *area;
    void **pages;
    void *priv;     /* the buffer as the driver describes it */
    unsigned long size, head, tail, watermark, woken_at;
    bool overwrite, busy;
    struct spe_aux_record *records;
    int record_count;
};

static struct slot {
    struct perf_event event;
    struct spe_ring ring;
    bool active, overran;
} slots[SLOTS];

#define slot_of(e) container_of(e, struct slot, event)

static void sched_out(struct slot *slot)
{
    if (!slot->active)
        return;
    pmu->del(&slot->event, 0);
    slot->active = false;
}

/* Stop the events whose buffers have overrun, as perf is meant to do here. */
void irq_work_run(void)
{
    for (struct slot *slot = slots; slot < slots + SLOTS; slot++) {
        if (slot->overran && spe_options.act_on_truncate)
            sched_out(slot);
        slot->overran = false;
    }
}

static void move_wakeup(struct spe_ring *ring)
{
    if (!ring->overwrite && ring->head - ring->woken_at >= ring->watermark)
        ring->woken_at = ring->head - ring->head % ring->watermark;
}

void *perf_aux_output_begin(struct perf_output_handle *handle, struct perf_event *event)
{
    struct spe_ring *ring = &slot_of(event)->ring;

    handle->event = NULL;
    if (ring->busy) {
        spe_shim_message("perf_aux_output_begin: the buffer is busy");
        return NULL;
    }
    handle->rb = ring;
    handle->head = ring->head;
    handle->size = 0;
    handle->aux_flags = 0;
    if (!ring->overwrite) {
        unsigned long unread = ring->head - ring->tail;

        handle->wakeup = ring->woken_at + ring->watermark;
        /* One byte stays free, to distinguish a full buffer from an empty one. */
        if (unread < ring->size)
            handle->size = ring->size - 1 - unread;
        if (!handle->size) {
            slot_of(event)->overran = true;
            return NULL;
        }
    }
    handle->event = event;
    ring->busy = true;
    return ring->priv;
}

void perf_aux_output_end(struct perf_output_handle *handle, unsigned long size)
{
    struct spe_ring *ring = handle->rb;

    if (ring->overwrite) {
        handle->aux_flags |= PERF_AUX_FLAG_OVERWRITE;
        ring->head = handle->head;
    }
    if (size || handle->aux_flags & ~(u64)PERF_AUX_FLAG_OVERWRITE) {
        ring->records = realloc(ring->records, (ring->record_count + 1) * sizeof(*ring->records));
        ring->records[ring->record_count++] = (struct spe_aux_record){ ring->head, size, handle->aux_flags };
    }
    if (!ring->overwrite)
        ring->head += size;
    if (handle->aux_flags & PERF_AUX_FLAG_TRUNCATED)
        slot_of(handle->event)->overran = true;
    move_wakeup(ring);
    ring->busy = false;
    handle->event = NULL;
}

int perf_aux_output_skip(struct perf_output_handle *handle, unsigned long size)
{
    struct spe_ring *ring = handle->rb;
    unsigned long woken_at = ring->woken_at;

    if (size > handle->size)
        return -ENOSPC;
    ring->head += size;
    move_wakeup(ring);
    if (ring->woken_at != woken_at)
        handle->wakeup = ring->woken_at + ring->watermark;
    handle->head = ring->head;
    handle->size -= size;
    return 0;
}

void perf_aux_output_flag(struct perf_output_handle *handle, u64 flags) { handle->aux_flags |= flags; }
void *perf_get_aux(struct perf_output_handle *handle) { return handle->event ? handle->rb->priv : NULL; }

/* ---- actions of perf and its user ---- */

static void free_aux(struct slot *slot)
{
    struct spe_ring *ring = &slot->ring;

    sched_out(slot);
    if (ring->priv)
        pmu->free_aux(ring->priv);
    free(ring->area);
    free(ring->pages);
    free(ring->records);
    *ring = (struct spe_ring){ 0 };
}

API void spe_remove(void)
{
    for (int number = 0; number < SLOTS; number++)
        free_aux(&slots[number]);
    if (driver->remove_new)
        driver->remove_new(&device);
    else
        driver->remove(&device);
    spe_module_exit();
}

API int spe_event_init(int number, u64 config, u64 config1, u64 config2, u64 config3, u64 sample_period, int exclude)
{
    struct slot *slot = &slots[number];
    int error;

    free_aux(slot);
    *slot = (struct slot){ .event = {
        .pmu = pmu,
        .attr = {
            .type = pmu->type, .sample_period = sample_period,
            .config = config, .config1 = config1, .config2 = config2, .config3 = config3,
            .exclude_user = exclude & 1, .exclude_kernel = exclude & 2, .exclude_hv = exclude & 4,
        },
        .hw = { .sample_period = sample_period, .period_left = { sample_period } },
    } };
    error = pmu->event_init(&slot->event);
    if (error)
        *slot = (struct slot){ 0 };
    return error;
}

/* Allocate the buffer of an event, filled with zeros; page_count is a power of two. Watermark 0: half of the buffer. */
API int spe_aux_setup(int number, int page_count, int snapshot, unsigned long watermark)
{
    struct slot *slot = &slots[number];
    struct spe_ring *ring = &slot->ring;

    free_aux(slot);
    ring->size = page_count * PAGE_SIZE;
    ring->area = aligned_alloc(PAGE_SIZE, ring->size);
    memset(ring->area, 0, ring->size);
    ring->pages = calloc(page_count, sizeof(*ring->pages));
    for (int page = 0; page < page_count; page++)
        ring->pages[page] = ring->area + page * PAGE_SIZE;
    ring->overwrite = snapshot;
    ring->watermark = watermark ? watermark : ring->size / 2;
    ring->priv = pmu->setup_aux(&slot->event, ring->pages, page_count, snapshot);
    return ring->priv ? 0 : -ENOMEM;
}

API u64 spe_page_size(void) { return PAGE_SIZE; }
API u64 spe_aux_base(int number) { return (u64)slots[number].ring.area; }
API u64 spe_aux_size(int number) { return slots[number].ring.size; }
API u64 spe_aux_head(int number) { return slots[number].ring.head; }
API void spe_aux_set_tail(int number, u64 tail) { slots[number].ring.tail = tail; }
API int spe_active(int number) { return slots[number].active; }

API int spe_aux_records(int number, struct spe_aux_record *to, int capacity)
{
    struct spe_ring *ring = &slots[number].ring;

    for (int i = 0; i < capacity && i < ring->record_count; i++)
        to[i] = ring->records[i];
    return ring->record_count;
}

API int spe_add(int number)
{
    struct slot *slot = &slots[number];
    int error;

    slot->active = true;
    error = pmu->add(&slot->event, PERF_EF_START);
    if (error)
        slot->active = false;
    irq_work_run();
    return error;
}

API void spe_del(int number)
{
    struct slot *slot = &slots[number];

    sched_out(slot);
    slot->overran = false;
}

API void spe_start(int number, int flags)
{
    pmu->start(&slots[number].event, flags);
    irq_work_run();
}

API void spe_stop(int number, int flags)
{
    pmu->stop(&slots[number].event, flags);
    irq_work_run();
}

/* ioctl(PERF_EVENT_IOC_PERIOD) */
API void spe_set_period(int number, u64 period)
{
    struct slot *slot = &slots[number];

    slot->event.attr.sample_period = slot->event.hw.sample_period = period;
    if (slot->active)
        pmu->stop(&slot->event, PERF_EF_UPDATE);
    local64_set(&slot->event.hw.period_left, 0);
    if (slot->active)
        pmu->start(&slot->event, PERF_EF_RELOAD);
    irq_work_run();
}

/* The CPU takes PMBIRQ. Return -ENXIO if the driver has not requested the interrupt, or has disabled it. */
API int spe_irq(void)
{
    int answer = irq_handler && irq_enabled ? irq_handler(SPE_IRQ, irq_context) : -ENXIO;

    irq_work_run();
    return answer;
}
