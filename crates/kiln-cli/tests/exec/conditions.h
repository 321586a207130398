/* Conditional nodes of graphs. */
typedef unsigned long long condition;
enum { IF = 0, WHILE = 1, SWITCH = 2 };
enum { ASSIGN_DEFAULT = 1 };
enum { KERNEL_NODE = 0, CONDITIONAL_NODE = 13 };

/* The structure CUgraphNodeParams, with what a conditional node has. */
struct conditional {
    int kind, reserved[3];
    condition of;
    int type;
    unsigned size;
    handle *bodies;
    handle context;
    unsigned long long unused[25];
    long long rest;
};
struct kernel_node {
    handle function;
    unsigned grid[3], block[3], shared_bytes;
    void **parameters, **extra;
    handle kernel, context;
};
struct fill_node {
    address to;
    size_t pitch;
    unsigned value, element_bytes;
    size_t width, height;
};
int cuGraphConditionalHandleCreate(condition *out, handle graph, handle context, unsigned initial, unsigned flags);
int cuGraphAddNode(handle *node, handle graph, const handle *after, size_t count, struct conditional *parameters);
int cuGraphNodeSetParams(handle node, struct conditional *parameters);
int cuGraphExecNodeSetParams(handle exec, handle node, struct conditional *parameters);
int cuGraphAddKernelNode_v2(handle *node, handle graph, const handle *after, size_t count, const struct kernel_node *parameters);
int cuGraphAddMemsetNode(handle *node, handle graph, const handle *after, size_t count, const struct fill_node *parameters, handle context);
int cuGraphAddHostNode(handle *node, handle graph, const handle *after, size_t count, const void *parameters);
int cuGraphExecUpdate_v2(handle exec, handle graph, void *result);
int cuGraphNodeSetEnabled(handle exec, handle node, unsigned enabled);

/* `decide` sets a condition; `count_down` takes 1 from a word and sets a condition to it; `add` adds to a word. */
static const char *CONDITIONS =
    ".version 8.0\n.target sm_70\n.address_size 64\n"
    ".extern .func cudaGraphSetConditional(.param .b64 condition, .param .b32 value);\n"
    ".visible .entry decide(.param .u64 of, .param .u32 to)\n{\n"
    ".reg .b32 %v;\n.reg .b64 %c;\n"
    "ld.param.u64 %c, [of];\nld.param.u32 %v, [to];\n"
    "{\n.param .b64 condition;\n.param .b32 value;\n"
    "st.param.b64 [condition], %c;\nst.param.b32 [value], %v;\n"
    "call.uni cudaGraphSetConditional, (condition, value);\n}\nret;\n}\n"
    ".visible .entry count_down(.param .u64 of, .param .u64 word)\n{\n"
    ".reg .b32 %v;\n.reg .b64 %c, %p;\n"
    "ld.param.u64 %c, [of];\nld.param.u64 %p, [word];\n"
    "ld.global.u32 %v, [%p];\nsub.u32 %v, %v, 1;\nst.global.u32 [%p], %v;\n"
    "{\n.param .b64 condition;\n.param .b32 value;\n"
    "st.param.b64 [condition], %c;\nst.param.b32 [value], %v;\n"
    "call.uni cudaGraphSetConditional, (condition, value);\n}\nret;\n}\n"
    ".visible .entry add(.param .u64 word, .param .u32 more)\n{\n"
    ".reg .b32 %v, %w;\n.reg .b64 %p;\n"
    "ld.param.u64 %p, [word];\nld.param.u32 %w, [more];\n"
    "ld.global.u32 %v, [%p];\nadd.u32 %v, %v, %w;\nst.global.u32 [%p], %v;\nret;\n}\n";

/* NVIDIA's archive of the device runtime, or one with the name of its object. */
static int add_device_runtime(handle link) {
    static const char *file = "/usr/local/cuda/lib64/libcudadevrt.a";
    static const char archive[] = "!<arch>\ncuda_device_runtime.o/ 0           0     0     644     4         `\nbody";
    if (access(file, R_OK) == 0) return cuLinkAddFile_v2(link, 4, file, 0, NULL, NULL);
    return cuLinkAddData_v2(link, 4, (void *)archive, sizeof archive, "runtime", 0, NULL, NULL);
}

/* A module with the kernels. */
static int condition_module(handle *module) {
    handle link;
    void *code;
    size_t bytes;
    int failed = cuLinkCreate_v2(0, NULL, NULL, &link);
    if (!failed) failed = cuLinkAddData_v2(link, 1, (void *)CONDITIONS, strlen(CONDITIONS) + 1, "conditions", 0, NULL, NULL);
    if (!failed) failed = add_device_runtime(link);
    if (!failed) failed = cuLinkComplete(link, &code, &bytes);
    if (!failed) failed = cuModuleLoadData(module, code);
    return failed ? failed : cuLinkDestroy(link);
}
