// Textures and surfaces by object.
extern "C" __global__ void sample(cudaTextureObject_t t, cudaSurfaceObject_t s, float* out) {
    int i = threadIdx.x;
    float v = tex2D<float>(t, i + 0.5f, 1.5f);
    surf2Dwrite(v, s, i * 4, 0);
    out[i] = v + tex1Dfetch<float>(t, i) + surf1Dread<float>(s, i * 4);
}
