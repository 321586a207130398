//! The numbers of cuDNN's enums, with their names for messages. They are the same in all versions of cuDNN 9.

/// A number of one of cuDNN's enums.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::operation) struct Named {
    pub(super) number: i32,
    pub(super) name: &'static str,
}

macro_rules! numbers {
    ($($(#[$note:meta])* $module:ident { $($name:ident = $number:literal,)* })*) => {
        $($(#[$note])* pub(super) mod $module {
            use super::Named;

            $(pub(in crate::operation::cudnn) const $name: Named = Named { number: $number, name: stringify!($name) };)*
        })*
    };
}

numbers! {
    /// `cudnnBackendDescriptorType_t`, without its prefix.
    descriptor_type {
        POINTWISE = 0,
        CONVOLUTION = 1,
        ENGINE = 2,
        ENGINECFG = 3,
        ENGINEHEUR = 4,
        EXECUTION_PLAN = 5,
        OPERATION_CONVOLUTION_FORWARD = 10,
        OPERATION_CONVOLUTION_BACKWARD_FILTER = 11,
        OPERATION_CONVOLUTION_BACKWARD_DATA = 12,
        OPERATION_POINTWISE = 13,
        OPERATIONGRAPH = 15,
        VARIANT_PACK = 16,
        TENSOR = 17,
        MATMUL = 18,
        OPERATION_MATMUL = 19,
        REDUCTION = 21,
        OPERATION_REDUCTION = 22,
    }

    /// `cudnnBackendAttributeName_t`, without its prefix.
    attribute {
        POINTWISE_MODE = 0,
        POINTWISE_MATH_PREC = 1,
        POINTWISE_AXIS = 9,
        CONVOLUTION_COMP_TYPE = 100,
        CONVOLUTION_CONV_MODE = 101,
        CONVOLUTION_DILATIONS = 102,
        CONVOLUTION_FILTER_STRIDES = 103,
        CONVOLUTION_POST_PADDINGS = 104,
        CONVOLUTION_PRE_PADDINGS = 105,
        CONVOLUTION_SPATIAL_DIMS = 106,
        ENGINEHEUR_MODE = 200,
        ENGINEHEUR_OPERATION_GRAPH = 201,
        ENGINEHEUR_RESULTS = 202,
        ENGINECFG_ENGINE = 300,
        EXECUTION_PLAN_HANDLE = 400,
        EXECUTION_PLAN_ENGINE_CONFIG = 401,
        EXECUTION_PLAN_WORKSPACE_SIZE = 402,
        OPERATION_CONVOLUTION_FORWARD_ALPHA = 700,
        OPERATION_CONVOLUTION_FORWARD_BETA = 701,
        OPERATION_CONVOLUTION_FORWARD_CONV_DESC = 702,
        OPERATION_CONVOLUTION_FORWARD_W = 703,
        OPERATION_CONVOLUTION_FORWARD_X = 704,
        OPERATION_CONVOLUTION_FORWARD_Y = 705,
        OPERATION_CONVOLUTION_BWD_DATA_ALPHA = 706,
        OPERATION_CONVOLUTION_BWD_DATA_BETA = 707,
        OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC = 708,
        OPERATION_CONVOLUTION_BWD_DATA_W = 709,
        OPERATION_CONVOLUTION_BWD_DATA_DX = 710,
        OPERATION_CONVOLUTION_BWD_DATA_DY = 711,
        OPERATION_CONVOLUTION_BWD_FILTER_ALPHA = 712,
        OPERATION_CONVOLUTION_BWD_FILTER_BETA = 713,
        OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC = 714,
        OPERATION_CONVOLUTION_BWD_FILTER_DW = 715,
        OPERATION_CONVOLUTION_BWD_FILTER_X = 716,
        OPERATION_CONVOLUTION_BWD_FILTER_DY = 717,
        OPERATION_POINTWISE_PW_DESCRIPTOR = 750,
        OPERATION_POINTWISE_XDESC = 751,
        OPERATION_POINTWISE_BDESC = 752,
        OPERATION_POINTWISE_YDESC = 753,
        OPERATION_POINTWISE_ALPHA1 = 754,
        OPERATION_POINTWISE_ALPHA2 = 755,
        OPERATION_POINTWISE_TDESC = 758,
        OPERATIONGRAPH_HANDLE = 800,
        OPERATIONGRAPH_OPS = 801,
        TENSOR_BYTE_ALIGNMENT = 900,
        TENSOR_DATA_TYPE = 901,
        TENSOR_DIMENSIONS = 902,
        TENSOR_STRIDES = 903,
        TENSOR_UNIQUE_ID = 906,
        TENSOR_IS_VIRTUAL = 907,
        TENSOR_IS_BY_VALUE = 908,
        VARIANT_PACK_UNIQUE_IDS = 1000,
        VARIANT_PACK_DATA_POINTERS = 1001,
        VARIANT_PACK_WORKSPACE = 1003,
        ENGINE_GLOBAL_INDEX = 1301,
        ENGINE_NUMERICAL_NOTE = 1303,
        MATMUL_COMP_TYPE = 1500,
        OPERATION_MATMUL_ADESC = 1520,
        OPERATION_MATMUL_BDESC = 1521,
        OPERATION_MATMUL_CDESC = 1522,
        OPERATION_MATMUL_DESC = 1523,
        REDUCTION_OPERATOR = 1600,
        REDUCTION_COMP_TYPE = 1601,
        OPERATION_REDUCTION_XDESC = 1610,
        OPERATION_REDUCTION_YDESC = 1611,
        OPERATION_REDUCTION_DESC = 1612,
    }

    /// `cudnnBackendAttributeType_t`: what the elements of an attribute are.
    attribute_type {
        HANDLE = 0,
        DATA_TYPE = 1,
        BOOLEAN = 2,
        INT64 = 3,
        FLOAT = 4,
        VOID_PTR = 6,
        CONVOLUTION_MODE = 7,
        HEUR_MODE = 8,
        NUMERICAL_NOTE = 11,
        POINTWISE_MODE = 14,
        BACKEND_DESCRIPTOR = 15,
        REDUCTION_OPERATOR_TYPE = 18,
    }

    /// `cudnnDataType_t`.
    data_type {
        FLOAT = 0,
        HALF = 2,
        INT32 = 4,
        BFLOAT16 = 9,
        BOOLEAN = 11,
    }

    /// `cudnnPointwiseMode_t`.
    pointwise {
        ADD = 0,
        MUL = 1,
        DIV = 6,
        SUB = 9,
        EXP = 13,
        LOG = 15,
        CMP_GE = 303,
        GEN_INDEX = 501,
        BINARY_SELECT = 601,
    }

    /// `cudnnReduceTensorOp_t`.
    reduction {
        ADD = 0,
        MAX = 3,
    }

    /// `cudnnBackendHeurMode_t`.
    heuristic {
        HEUR_MODE_FALLBACK = 2,
        HEUR_MODE_A = 3,
    }

    /// `cudnnBackendNumericalNote_t`: what results of an engine are like.
    note {
        TENSOR_CORE = 0,
        DOWN_CONVERT_INPUTS = 1,
        REDUCED_PRECISION_REDUCTION = 2,
        FFT = 3,
        NONDETERMINISTIC = 4,
        WINOGRAD = 5,
        WINOGRAD_TILE_4X4 = 6,
        WINOGRAD_TILE_6X6 = 7,
        WINOGRAD_TILE_13X13 = 8,
    }

    /// `cudnnConvolutionMode_t`.
    convolution_mode {
        CROSS_CORRELATION = 1,
    }
}
