/* A cuBLASLt for tests: every product has an algorithm that takes a workspace, and its calls do nothing. */
#include <stddef.h>

struct heuristic {
    unsigned long long algorithm[8];
    size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
};

static char object;

static int make(void **made) { return *made = &object, 0; }

int cublasLtCreate(void **handle) { return make(handle); }
int cublasLtMatmulDescCreate(void **made, int compute, int scale) { return make(made); }
int cublasLtMatrixLayoutCreate(void **made, int type, unsigned long long rows, unsigned long long columns, long long leading) { return make(made); }
int cublasLtMatmulPreferenceCreate(void **made) { return make(made); }

#define NOTHING(name) int name(void) { return 0; }
NOTHING(cublasLtDestroy) NOTHING(cublasLtMatmulDescDestroy) NOTHING(cublasLtMatrixLayoutDestroy)
NOTHING(cublasLtMatmulPreferenceDestroy) NOTHING(cublasLtMatmulDescSetAttribute)
NOTHING(cublasLtMatrixLayoutSetAttribute) NOTHING(cublasLtMatmulPreferenceSetAttribute) NOTHING(cublasLtMatmul)

int cublasLtMatmulAlgoGetHeuristic(void *handle, void *product, void *a, void *b, void *c, void *d, void *preference, int wanted,
                                   struct heuristic *found, int *count) {
    *count = wanted < 1 ? wanted : 1;
    if (*count) found[0] = (struct heuristic){.workspace_bytes = 1 << 16};
    return 0;
}
