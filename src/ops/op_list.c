/* op_list.c: fills the registries of ops and kernels. */
#include "ops/op_list.h"

#include <pthread.h>
#include <string.h>

#include "ops/composite_tensor.h"
#include "ops/csr_matrix.h"
#include "ops/dataset/compressed_element.h"
#include "ops/dataset/iterator_variant.h"
#include "ops/dataset/optional.h"
#include "ops/number_variant.h"
#include "ops/ragged_variant.h"
#include "ops/sparse_tensor.h"
#include "ops/tensor_list.h"
#include "ops/tensor_map.h"

static const OpDef *const op_tables[] = {
#define ROW(name) name##_ops,
    OP_FILES(ROW)
#undef ROW
};

static const KernelDef *const kernel_tables[] = {
#define ROW(name) name##_cpu,
    OP_FILES(ROW)
#undef ROW
};

static VariantDecoder variant_decoders[10 + NUMBER_VARIANTS]; /* the last row ends the table */

static void fill(void) {
    variant_decoders[0] = tensor_list_decoder;
    variant_decoders[1] = iterator_variant_decoder;
    variant_decoders[2] = ragged_variant_decoder;
    variant_decoders[3] = csr_matrix_decoder;
    variant_decoders[4] = tensor_map_decoder;
    variant_decoders[5] = dataset_optional_decoder;
    variant_decoders[6] = composite_tensor_decoder;
    variant_decoders[7] = compressed_element_decoder;
    variant_decoders[8] = tensor_variant_decoder;
    memcpy(&variant_decoders[9], number_variant_decoders, sizeof number_variant_decoders);
    variant_registry_init(variant_decoders);
    op_registry_init(op_tables, (int)(sizeof op_tables / sizeof op_tables[0]));
    kernel_registry_init(kernel_tables, (int)(sizeof kernel_tables / sizeof kernel_tables[0]));
}

void ops_register_all(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill);
}
